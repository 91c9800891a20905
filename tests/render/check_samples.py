"""Results of checks made by hand, for tests of what shows them.

``python -m tests.render.check_samples`` writes the golden files anew; look at their diff before you commit it.
"""

from __future__ import annotations

from pathlib import Path

from tests.report.samples import GIB, MIB
from vramdoc.render.findings import FORMATS, render_result
from vramdoc.report.findings import Checked, CheckResult, Fault, Finding, LineBlame, ModuleBlame

GOLDEN = Path(__file__).parent / "golden"
ENDINGS = {
    "text": "txt",
    "json": "json",
    "markdown": "md",
    "github": "github.txt",
    "gitlab": "gitlab.json",
    "junit": "xml",
    "sarif": "sarif",
}
_DEVICE = "NVIDIA A100-SXM4-40GB"


def finding(text: str = "", **changes: object) -> Finding:
    """A budget broken by attention scores that are kept; ``text`` replaces every text that users have a say in."""
    fields = {
        "rule": "over-budget",
        "check": text or "gpt2",
        "target": text or "models/gpt2.py",
        "device": _DEVICE,
        "batch_size": 8,
        "subject": "reserved",
        "measured_bytes": 17 * GIB,
        "allowed_bytes": 8 * GIB,
        "allowed_text": "8GiB",
        "baseline_bytes": 9 * GIB + 512 * MIB,
        "phase": "backward",
        "step": 1,
        "module": ModuleBlame(name=text or "blocks.*.attention", bytes=7 * GIB, grown_bytes=6 * GIB + 256 * MIB),
        "line": LineBlame(
            file=text or "models/gpt2.py",
            line=29,
            function=text or "forward",
            code=text or "scores = {0: 50%}[0] * (query @ key.transpose(-2, -1)).float()",
            bytes=6 * GIB,
            grown_bytes=6 * GIB,
        ),
        "file": text or "models/gpt2.py",
        "file_line": 29,
        "message": text or "Ask before raising this: #gpu-budget, 100% of cases.",
        "hint": text or "keep the scores in bfloat16: saves 3.00 GiB",
    }
    return Finding(**{**fields, **changes})  # type: ignore[arg-type]


def result(text: str = "") -> CheckResult:
    """One check that broke its budget and a tolerance, one that passed, one that could not be made."""
    broken = Checked(
        name=text or "gpt2",
        target=text or "models/gpt2.py",
        metric="reserved",
        device=_DEVICE,
        batch_size=8,
        measured_bytes=17 * GIB,
        limit_bytes=8 * GIB,
        limit_text="8GiB",
        baseline_bytes=9 * GIB + 512 * MIB,
        findings=(
            finding(text),
            finding(
                text,
                rule="increase",
                subject="phase backward",
                measured_bytes=16 * GIB,
                allowed_bytes=9 * GIB,
                allowed_text="3%",
                baseline_bytes=8 * GIB,
            ),
        ),
        warnings=(text or "the baseline is of another torch: 2.13.0, now 2.14.1",),
    )
    return CheckResult(checks=(broken, passed(), fault(text)))


def passed() -> Checked:
    """A budget that holds."""
    return Checked(
        name="lstm",
        target="models/lstm.py",
        metric="device",
        device=_DEVICE,
        batch_size=64,
        measured_bytes=4 * GIB + 768 * MIB,
        limit_bytes=32 * GIB,
        limit_text="80%",
    )


def fault(text: str = "") -> Checked:
    """A target that raises."""
    return Checked(
        name=text or "unet",
        target=text or "models/unet.py",
        metric="reserved",
        fault=Fault(
            message=text or "build_model() failed: ValueError: no weights",
            hint=text or "look at line 3",
            traceback=text or 'File "models/unet.py", line 3, in build_model\n    raise ValueError("no weights")\n',
            exit_code=3,
        ),
    )


def golden(form: str) -> Path:
    """The file that holds :func:`result` in one of the formats."""
    return GOLDEN / f"check.{ENDINGS[form]}"


if __name__ == "__main__":
    for each in FORMATS:
        golden(each).write_text(render_result(result(), each), encoding="utf-8")

"""One report against budgets and baselines, without running anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.samples import GIB, MIB, assumed, gpt2, leaky, module_row, too_big
from vramdoc.errors import UsageError
from vramdoc.gate import Budget, Footprint, evaluate, footprint, parse_limit, parse_tolerance
from vramdoc.report import Report
from vramdoc.report.findings import Checked, Metric


def checked(
    report: Report, limit: str | None, *tolerances: str, before: Footprint | None = None, **more: str
) -> Checked:
    budget = Budget(name="b", limit=parse_limit(limit) if limit else None, **more)  # type: ignore[arg-type]
    return evaluate(report, budget, baseline=before, tolerances=[parse_tolerance(text) for text in tolerances])


@pytest.mark.parametrize("metric", ["allocated", "reserved", "device"])
def test_to_the_byte(metric: Metric) -> None:
    """What is just allowed passes, one byte less fails, for each metric."""
    report = gpt2()
    need = {
        "allocated": report.peak.allocated_bytes,
        "reserved": report.peak.reserved_bytes,
        "device": report.peak.reserved_bytes + 443 * MIB,
    }[metric]
    assert checked(report, f"{need}B", metric=metric).passed
    (finding,) = checked(report, f"{need - 1}B", metric=metric).findings
    assert (finding.over_bytes, finding.measured_bytes, finding.subject) == (1, need, metric)


def test_share_is_one_of_the_gpu() -> None:
    """80 % of what CUDA reports, not of what is sold."""
    result = checked(gpt2(), "80%")
    assert result.limit_bytes == round(0.8 * 42_298_834_944)
    assert result.passed


def test_finding_names_the_largest_without_a_baseline() -> None:
    """Where, when, and which module's own bytes are most: not the model's, which hold everything."""
    (finding,) = checked(gpt2(), "8GiB", message="ask first").findings
    assert (finding.rule, finding.phase, finding.message) == ("over-budget", "loss", "ask first")
    assert finding.module is not None
    assert (finding.module.name, finding.module.grown_bytes) == ("transformer.h.*.mlp", None)
    assert finding.line is not None
    assert finding.line.bytes == gpt2().lines[0].bytes
    assert (finding.file, finding.file_line) == (finding.line.file, 41)


def grown() -> Report:
    """GPT-2 whose attention holds 4 GiB more, by a line that was edited and has moved."""
    report = gpt2()
    rows = [
        replace(row, activation_bytes=row.activation_bytes + GIB // 3, total_bytes=row.total_bytes + GIB // 3)
        if row.name.startswith("transformer.h.") and (row.name.endswith("attn") or row.name.count(".") == 2)
        else row
        for row in report.modules
    ]
    line = replace(report.lines[1], line=58, code="return self.c_proj(self.gelu(self.c_fc(x)).float())")
    line = replace(line, bytes=line.bytes + 4 * GIB)
    return replace(
        report,
        peak=replace(
            report.peak,
            allocated_bytes=report.peak.allocated_bytes + 4 * GIB,
            reserved_bytes=report.peak.reserved_bytes + 4 * GIB,
        ),
        categories={**report.categories, "activations": report.categories["activations"] + 4 * GIB},
        modules=tuple(rows),
        lines=(line, report.lines[0], *report.lines[2:]),
    )


def test_finding_names_what_grew_with_a_baseline() -> None:
    """The edited line by what it gained over its old self, and the module that gained most."""
    (finding,) = checked(grown(), None, "peak:3%", before=footprint(gpt2())).findings
    assert finding.rule == "increase"
    assert finding.module is not None
    assert (finding.module.name, finding.module.grown_bytes) == ("transformer.h.*.attn", 12 * (GIB // 3))
    assert finding.line is not None
    assert (finding.line.line, finding.line.grown_bytes) == (58, 4 * GIB)
    assert finding.baseline_bytes == gpt2().peak.reserved_bytes
    assert finding.allowed_bytes == finding.baseline_bytes + round(0.03 * finding.baseline_bytes)


@pytest.mark.parametrize(
    ("tolerance", "fails"),
    [
        ("peak:0", True),
        ("peak:5GiB", False),
        ("allocated:100MiB", True),
        ("activations:4095MiB", True),
        ("activations:4096MiB", False),
        ("parameters:0", False),
        ("backward:0", False),
        ("growth:0", False),
        ("transformer.h.*.attn:1GiB", True),
        ("transformer.h.*.mlp:0", False),
        ("module:transformer.h.*:4GiB", False),
    ],
)
def test_tolerances(tolerance: str, fails: bool) -> None:
    """Each figure is held against its own increase, to the byte."""
    assert checked(grown(), None, tolerance, before=footprint(gpt2())).passed is not fails


def test_annotation_points_at_the_users_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a package may be to blame, but a build system shows only files of the repository."""
    monkeypatch.chdir(tmp_path)
    report = gpt2()
    package = replace(report.lines[0], file=str(tmp_path / ".venv/lib/python3.11/site-packages/x.py"), line=7)
    beside = replace(report.lines[0], file=str(tmp_path / "layers/wide.py"), line=9)
    (finding,) = checked(replace(report, lines=(package, beside)), "8GiB").findings
    assert finding.line is not None
    assert (finding.line.line, finding.file, finding.file_line) == (7, "layers/wide.py", 9)
    (finding,) = checked(replace(report, lines=(package,)), "8GiB").findings
    assert (finding.file, finding.file_line) == ("sample_models/gpt2.py", 1)


def test_nothing_grew() -> None:
    """A budget that was lowered names what is largest, though there is a baseline."""
    (finding,) = checked(gpt2(), "8GiB", before=footprint(gpt2())).findings
    assert finding.module is not None
    assert finding.module.grown_bytes is None
    assert finding.line is not None


def test_module_tolerance_blames_below_it() -> None:
    """A tolerance on a module must not point at another one that grew more."""
    report = grown()
    rows = (*report.modules, module_row("extra", "Linear", 0, 9 * GIB))
    found = checked(replace(report, modules=rows), None, "module:transformer.h.*:1GiB", before=footprint(gpt2()))
    assert found.findings[0].module is not None
    assert found.findings[0].module.name == "transformer.h.*.attn"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("transformer.h.3.mlp", "layers count together: transformer.h.*.mlp"),
        ("transformer.h.*.mpl", "did you mean transformer.h.*.ml"),
        ("gradeints", "vramdoc baseline show --modules"),
    ],
)
def test_unknown_module(name: str, hint: str) -> None:
    """A misspelt tolerance would never fail: it is an error."""
    with pytest.raises(UsageError, match="has no category, phase or module called") as caught:
        checked(gpt2(), None, f"{name}:0", before=footprint(gpt2()))
    assert hint in caught.value.hint


def test_percent_of_nothing() -> None:
    """What was not there before may not grow by any share."""
    report = gpt2()
    more = replace(report, categories={**report.categories, "communication": 1})
    assert not checked(more, None, "communication:50%", before=footprint(report)).passed


def test_leak() -> None:
    """Growth per step is a figure of its own."""
    (finding,) = checked(replace(leaky(), fits=True), None, "growth:0", before=footprint(gpt2())).findings
    assert (finding.subject, finding.over_bytes) == ("growth", 3 * GIB // 2)


def test_warnings() -> None:
    """What a reader must know to trust the result: other conditions, assumptions, a GPU that is too small."""
    before = replace(footprint(gpt2()), device="NVIDIA H100", batch_size=4, torch="2.13.0")
    told = "\n".join(checked(gpt2(), "22GiB", before=before).warnings)
    for what in ("another GPU: NVIDIA H100, now NVIDIA A100", "another batch size: 4, now 8", "another torch: 2.13.0"):
        assert what in told
    assert "up to 15.39 GiB" in "\n".join(checked(assumed(), "22GiB").warnings)
    told = "\n".join(checked(too_big(), "60GiB").warnings)
    assert "does not fit" in told
    assert "60.00 GiB, is more than NVIDIA GeForce RTX 4090 has: 23.53 GiB" in told


def test_real_gpu_that_was_full() -> None:
    """Figures end where memory did: under the budget they prove nothing, over it they are enough."""
    report = too_big()
    report = replace(report, device=replace(report.device, kind="real"))
    with pytest.raises(UsageError, match="ran out of GPU memory"):
        checked(report, "60GiB")
    assert not checked(report, "10GiB").passed


def test_advisor_is_asked_for_what_is_over() -> None:
    """The hint is sought for just the bytes that are too many."""
    asked = []

    def advise(_report: Report, excess: int) -> str:
        asked.append(excess)
        return "checkpoint the blocks"

    budget = Budget(name="b", limit=parse_limit("8GiB"))
    (finding,) = evaluate(gpt2(), budget, advisor=advise).findings
    assert (finding.hint, asked) == ("checkpoint the blocks", [finding.over_bytes])

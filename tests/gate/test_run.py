"""``vramdoc.check``, the same from Python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import vramdoc
from tests.report.samples import gpt2
from vramdoc.errors import ReportError, TargetError, UsageError
from vramdoc.gate import (
    Baseline,
    Budget,
    CheckResult,
    Conditions,
    Fault,
    Job,
    encode_baseline,
    footprint,
    parse_tolerance,
    run_checks,
)
from vramdoc.report import Report, encode
from vramdoc.report.findings import Checked
from vramdoc.runner import many


def test_report_as_value_and_as_file(tmp_path: Path) -> None:
    """Both give the same typed result."""
    file = tmp_path / "report.json"
    file.write_text(encode(gpt2()))
    result = vramdoc.check(gpt2(), budget="8GiB")
    assert isinstance(result, Checked)
    assert not result.passed
    assert result.findings[0].over_bytes == gpt2().peak.reserved_bytes - 8 * 1024**3
    assert vramdoc.check(file, budget="8GiB") == result
    assert vramdoc.check(gpt2(), budget="80%", metric="device").passed


def test_baseline(tmp_path: Path) -> None:
    """A file as the command line keeps it, its entry called by the target or by name."""
    file = tmp_path / "base.json"
    entries = {"sample_models/gpt2.py": footprint(gpt2()), "other": footprint(gpt2())}
    file.write_text(encode_baseline(Baseline(entries=entries)))
    grown = replace(gpt2(), growth_bytes_per_step=1)
    assert vramdoc.check(gpt2(), baseline=file, fail_on_increase=["peak:0", "growth:0"]).passed
    assert not vramdoc.check(grown, baseline=file, fail_on_increase=["growth:0"], name="other").passed


def test_target_is_profiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings are those of ``vramdoc.profile``; its errors are raised."""
    asked = {}

    def profile(target: str, **options: object) -> Report:
        asked.update({"target": target, **options})
        return gpt2()

    monkeypatch.setattr(many, "profile", profile)
    vramdoc.check(Path("model.py"), budget="22GiB", gpu="h100", batch_size=4, assume={"index": "half"})
    assert {key: asked[key] for key in ("target", "gpu", "batch_size", "assume")} == {
        "target": "model.py",
        "gpu": "h100",
        "batch_size": 4,
        "assume": {"index": "half"},
    }

    def broken(*_: object, **__: object) -> Report:
        raise TargetError("no model")

    monkeypatch.setattr(many, "profile", broken)
    with pytest.raises(TargetError, match="no model"):
        vramdoc.check("model.py", budget="22GiB")


def test_tolerance_for_a_module_of_one_model() -> None:
    """It is about the models that have the module; where none has it, every check says so."""
    other = replace(gpt2(), modules=(replace(gpt2().modules[0], name="convolutions"),))
    jobs = [Job(budget=Budget(name=name, limit=None), subject=report) for name, report in (("a", gpt2()), ("b", other))]
    baseline = Baseline(entries={"a": footprint(gpt2()), "b": footprint(other)})

    def made(tolerance: str) -> list[bool]:
        conditions = Conditions(baseline=baseline, tolerances=(parse_tolerance(tolerance),))
        return [check.fault is None for check in run_checks(jobs, conditions).checks]

    assert made("convolutions:0") == [True, True]
    assert made("convulsions:0") == [False, False]


def test_what_cannot_be_checked(tmp_path: Path) -> None:
    """Errors are raised, not returned."""
    with pytest.raises(UsageError, match="nothing to check against"):
        vramdoc.check(gpt2())
    with pytest.raises(UsageError, match="has no unit"):
        vramdoc.check(gpt2(), budget="22")
    with pytest.raises(UsageError, match="metric 'all'"):
        vramdoc.check(gpt2(), budget="22GiB", metric="all")
    with pytest.raises(ReportError, match="no such file"):
        vramdoc.check(tmp_path / "none.json", budget="22GiB")


def test_exit_code_is_that_of_the_first_error() -> None:
    """A result that is not whole is no verdict."""
    failed = vramdoc.check(gpt2(), budget="8GiB")
    fault = Checked(name="x", target="x.py", metric="reserved", fault=Fault.of(TargetError("no model")))
    assert CheckResult(checks=(failed,)).exit_code == 1
    assert CheckResult(checks=(failed, fault)).exit_code == 3
    assert CheckResult(checks=(vramdoc.check(gpt2(), budget="22GiB"),)).exit_code == 0

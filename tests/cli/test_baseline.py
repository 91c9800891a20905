"""``vramdoc baseline``: what is accepted, and how it is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Ran
from tests.report.samples import GIB, gpt2
from tests.test_bad_input import environment
from vramdoc.errors import TargetError
from vramdoc.gate import read_baseline
from vramdoc.report import Report, encode
from vramdoc.runner import many

Run = Callable[..., Ran]
FILE = "vram-baseline.json"


def grown(report: Report, size: int) -> Report:
    """The same with ``size`` bytes more of activations."""
    peak = replace(
        report.peak,
        allocated_bytes=report.peak.allocated_bytes + size,
        reserved_bytes=report.peak.reserved_bytes + size,
    )
    categories = {**report.categories, "activations": report.categories["activations"] + size}
    return replace(report, peak=peak, categories=categories)


def test_accept_and_hold(vramdoc: Run, project: Path) -> None:
    """Update, check, grow, fail, update, pass: the life of a baseline."""
    check = ("check", "report.json", "--baseline", FILE, "--fail-on-increase", "activations:200MiB")
    (project / "report.json").write_text(encode(gpt2()))
    ran = vramdoc("baseline", "update", "report.json")
    assert (ran.code, ran.err) == (0, f"wrote {FILE}\n")
    assert ran.out == "sample_models/gpt2.py: 12.99 GiB reserved, new\n"
    assert vramdoc(*check).code == 0
    (project / "report.json").write_text(encode(grown(gpt2(), GIB)))
    failed = vramdoc(*check)
    assert failed.code == 1
    assert "activations grew by 1.00 GiB from 9.19 GiB to 10.19 GiB; 200MiB is allowed" in failed.out
    assert vramdoc("baseline", "update", "report.json").out.endswith("13.99 GiB reserved, +1.00 GiB\n")
    assert vramdoc(*check).code == 0
    assert vramdoc("baseline", "update", "report.json").out.endswith("13.99 GiB reserved, unchanged\n")
    assert {path.name for path in project.iterdir()} == {"pyproject.toml", "report.json", FILE}


def test_other_entries_stay(vramdoc: Run, project: Path) -> None:
    """Accepting one change does not accept, or lose, the rest."""
    (project / "report.json").write_text(encode(gpt2()))
    for name in ("b", "a", "b"):
        vramdoc("baseline", "update", "report.json", "--name", name)
    assert list(json.loads((project / FILE).read_text())["entries"]) == ["a", "b"]


def test_show(vramdoc: Run, project: Path) -> None:
    """What was accepted, and under which conditions; the modules that tolerances may name."""
    (project / "report.json").write_text(encode(gpt2()))
    vramdoc("baseline", "update", "report.json", "--name", "gpt2")
    shown = vramdoc("baseline", "show").out
    assert "gpt2  12.39 GiB allocated, 12.99 GiB reserved, 13.42 GiB device" in shown
    assert "batch 8, NVIDIA A100-SXM4-40GB, torch 2.14.1+cu130" in shown
    assert "transformer.h.*.attn" not in shown
    assert "transformer.h.*.attn" in vramdoc("baseline", "show", "--modules").out
    (project / FILE).write_text('{"schema_version": 1}')
    assert vramdoc("baseline", "show").out == "The baseline is empty.\n"


def test_all_or_nothing(vramdoc: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that fails leaves the file as it was, with the other's entry too."""
    budget = "[[tool.vramdoc.budget]]\nname = '{0}'\ntarget = '{0}.py'\nlimit = '1GiB'\ngpu = 'a100-40'\n"
    (project / "pyproject.toml").write_text(budget.format("a") + budget.format("b"))

    def profile(target: str, **_: object) -> Report:
        if target == "b.py":
            raise TargetError("no model")
        return gpt2()

    monkeypatch.setattr(many, "profile", profile)
    ran = vramdoc("baseline", "update")
    assert (ran.code, ran.out, ran.err) == (3, "", "error: no model\n")
    assert not (project / FILE).exists()


@pytest.mark.parametrize("content", ["", "<<<<<<< HEAD", '{"schema_version": 7}'])
def test_broken_file_is_not_overwritten(vramdoc: Run, project: Path, content: str) -> None:
    """What cannot be read may hold somebody's work."""
    (project / "report.json").write_text(encode(gpt2()))
    (project / FILE).write_text(content)
    ran = vramdoc("baseline", "update", "report.json")
    assert (ran.code, ran.out) == (2, "")
    assert FILE in ran.err
    assert (project / FILE).read_text() == content


def test_at_the_same_time(project: Path) -> None:
    """Several updates and checks in one folder: no entry is lost, no file is left, every result is right."""
    (project / "report.json").write_text(encode(gpt2()))
    module = [sys.executable, "-m", "vramdoc"]
    update, check = [*module, "baseline", "update", "report.json", "--name"], [*module, "check", "report.json"]
    running = [
        subprocess.Popen(command, cwd=project, env=environment(), stdout=subprocess.DEVNULL)
        for index in range(6)
        for command in ([*update, f"run-{index}"], [*check, "--budget", "8GiB", "-o", "shared.txt"])
    ]
    assert [process.wait(60) for process in running] == [0, 1] * 6
    assert set(read_baseline(project / FILE).entries) == {f"run-{index}" for index in range(6)}
    assert (project / "shared.txt").read_text().endswith("1 check failed\n")
    assert {path.name for path in project.iterdir()} == {"pyproject.toml", "report.json", "shared.txt", FILE}

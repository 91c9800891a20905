"""``vramdoc diff``: two reports, two targets, or two revisions of one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran
from tests.cli.test_baseline import grown
from tests.report.samples import GIB, HOSTILE, gpt2, hostile
from vramdoc.report import Report, encode
from vramdoc.runner import many, revisions

Run = Callable[..., Ran]


@pytest.fixture
def reports(project: Path) -> tuple[str, str]:
    (project / "before.json").write_text(encode(gpt2()))
    (project / "after.json").write_text(encode(grown(gpt2(), GIB)))
    return "before.json", "after.json"


def test_text(vramdoc: Run, reports: tuple[str, str]) -> None:
    """The answer first, then the tables; what is equal is not in them."""
    ran = vramdoc("diff", *reports)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Grew by 1.00 GiB: from 12.99 GiB to 13.99 GiB reserved\n")
    assert "+1.00 GiB     9.19 GiB    10.19 GiB  activations" in ran.out
    assert "parameters" not in ran.out
    back = vramdoc("diff", *reversed(reports)).out
    assert back.startswith("Shrank by 1.00 GiB: from 13.99 GiB to 12.99 GiB reserved\n")
    assert vramdoc("diff", "before.json", "before.json").out.startswith("No figure changed.\n")


def test_json(vramdoc: Run, reports: tuple[str, str]) -> None:
    """Bytes, for programs."""
    shown = json.loads(vramdoc("diff", *reports, "--output-format", "json").out)
    before = gpt2().categories["activations"]
    assert shown["categories"] == [
        {"name": "activations", "before": before, "after": before + GIB, "grown": GIB},
    ]
    assert shown["modules"] == shown["lines"] == []


def test_markdown_of_hostile_reports(vramdoc: Run, project: Path) -> None:
    """Names in a report stay text in a pull request, and the terminal gets no escape sequence."""
    (project / "a.json").write_text(encode(gpt2()))
    (project / "b.json").write_text(encode(hostile()))
    shown = vramdoc("diff", "a.json", "b.json", "--output-format", "markdown").out
    assert "\x1b" not in shown + vramdoc("diff", "a.json", "b.json").out
    assert HOSTILE.splitlines()[0] not in shown
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {5}


def test_two_targets(vramdoc: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """A Python file is profiled; the settings are those of both."""
    calls: list[tuple[str, Any]] = []

    def profile(target: str, **options: Any) -> Report:
        calls.append((target, options["gpu"]))
        return gpt2()

    monkeypatch.setattr(many, "profile", profile)
    assert vramdoc("diff", "a.py", "b.py", "--gpu", "h100").code == 0
    assert sorted(calls) == [("a.py", "h100"), ("b.py", "h100")]


def test_revisions(vramdoc: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """The range and the target reach those who check out; each run is called by its revision."""
    asked: list[Any] = []

    def profile_revisions(wanted: Any, target: Any, **_: Any) -> tuple[Report, Report]:
        asked.append((wanted, target.target, target.gpu))
        return gpt2(), grown(gpt2(), GIB)

    monkeypatch.setattr(revisions, "profile_revisions", profile_revisions)
    ran = vramdoc("diff", "--rev", "main..HEAD", "model.py", "--gpu", "t4")
    assert asked == [(("main", "HEAD"), "model.py", "t4")]
    assert "before: sample_models/gpt2.py at main, batch 8" in ran.out
    assert "after: sample_models/gpt2.py at HEAD, batch 8" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "error: two runs are needed to compare\nhint: vramdoc diff before.json"),
        (("before.json",), "error: two runs are needed to compare"),
        (("before.json", "none.json"), "error: no such file: none.json"),
        (("--rev", "a..b", "model.py", "other.py"), "error: --rev compares one target with itself"),
        (("--rev", "a...b", "model.py"), "error: not a range of revisions: 'a...b'"),
        (("before.json", "after.json", "--output-format", "yaml"), "error: no output format is called 'yaml'"),
        (("before.json", "after.json", "--gpu", "h1000"), "error: no GPU called 'h1000'"),
    ],
)
def test_bad_arguments(vramdoc: Run, reports: tuple[str, str], arguments: tuple[str, ...], message: str) -> None:  # noqa: ARG001
    """Exit code 2 and one message."""
    ran = vramdoc("diff", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(message)

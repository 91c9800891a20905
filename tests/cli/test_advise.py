"""``vramdoc advise`` on the command line, with a runner that measures nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran
from tests.report.advice_samples import advice
from vramdoc import advise as adviser
from vramdoc.advise import Asked
from vramdoc.report.advice import AdviceReport


@pytest.fixture
def asked(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Asked, dict[str, Any]]]:
    """What the command asks for; it is answered with a sample."""
    calls: list[tuple[Asked, dict[str, Any]]] = []

    def answer(request: Asked, **options: Any) -> AdviceReport:
        calls.append((request, options))
        report = advice()
        return report if options["only"] is None else AdviceReport(**{**_fields(report), "effects": report.effects[:1]})

    (project / "model.py").write_text("")
    monkeypatch.setattr(adviser, "advise", answer)
    return calls


def _fields(report: AdviceReport) -> dict[str, Any]:
    return {name: getattr(report, name) for name in report.__dataclass_fields__}


def test_what_is_asked(asked: list[tuple[Asked, dict[str, Any]]], vramdoc: Callable[..., Ran]) -> None:
    """Every flag reaches the search, the budget in bytes and the margin as a share."""
    ran = vramdoc(
        "advise", "model.py", "--gpu", "a100-40", "--gpus", "8", "--gpus-per-node", "4", "--budget", "22GiB",
        "--batch-size", "4", "--allow", "speed,lora", "--margin", "2%", "--block", "Block", "--verify",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    ((request, options),) = asked
    assert (request.gpu.short_name, request.gpus, request.gpus_per_node) == ("a100-40", 8, 4)
    assert (request.budget_bytes, request.batch_size, request.margin) == (22 * 2**30, 4, 0.02)
    assert (request.allow, request.block, request.verify) == (("speed", "lora"), "Block", True)
    assert request.room.allowed_bytes == int(22 * 2**30 * 0.98)
    assert options["cache"] == Path.cwd() / ".vramdoc" / "cache"
    assert (Path.cwd() / ".vramdoc" / ".gitignore").read_text() == "*\n"


def test_room_of_a_gpu_and_of_a_budget(asked: list[tuple[Asked, dict[str, Any]]], vramdoc: Callable[..., Ran]) -> None:
    """A GPU keeps its context and 5 % free; a budget is taken as it is written."""
    vramdoc("advise", "model.py", "--gpu", "a100-40")
    vramdoc("advise", "model.py", "--gpu", "a100-40", "--budget", "22GiB")
    room = asked[0][0].room
    assert room.allowed_bytes == int((room.total_bytes - room.context_bytes) * 0.95)
    assert asked[1][0].room.allowed_bytes == 22 * 2**30


def test_formats(asked: list[tuple[Asked, dict[str, Any]]], vramdoc: Callable[..., Ran]) -> None:  # noqa: ARG001
    """JSON on stdout parses, and -o writes by its ending."""
    ran = vramdoc("advise", "model.py", "--json", "-o", "advice.html")
    assert json.loads(ran.out)["kind"] == "advice"
    assert Path("advice.html").read_text().startswith("<!doctype html>")


def test_show(asked: list[tuple[Asked, dict[str, Any]]], vramdoc: Callable[..., Ran]) -> None:
    """A measure by name is run alone; a plan is shown by its number."""
    ran = vramdoc("advise", "model.py", "--show", "checkpoint")
    assert ran.out.startswith("activation checkpointing  checkpoint, speed")
    assert asked[0][1]["only"] == "checkpoint"
    assert "fastest that fits" in vramdoc("advise", "model.py", "--show", "1").out
    assert vramdoc("advise", "model.py", "--show", "9").code == 2


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("other.py",), "no such file: other.py", ""),
        (("model.py", "--gpu", "a1000-40"), "no GPU called 'a1000-40'", "did you mean"),
        (("model.py", "--gpus", "0"), "number of GPUs is 0", ""),
        (("model.py", "--gpus-per-node", "-1"), "number of GPUs per node is -1", ""),
        (("model.py", "--budget", "much"), "not a size: 'much'", "22GiB"),
        (("model.py", "--budget", "0GiB"), "budget is 0", ""),
        (("model.py", "--margin", "lots"), "not a share: 'lots'", "--margin 5%"),
        (("model.py", "--margin", "100%"), "margin is 1", ""),
        (("model.py", "--allow", "sped"), "no tier or measure is called 'sped'", "did you mean speed?"),
        (("model.py", "--show", "chekpoint"), "no measure is called 'chekpoint'", ""),
        (("model.py", "-o", "advice.docx"), "cannot tell the format", ".json"),
        (("model.py", "-o", "there/advice.md"), "there is no folder", ""),
        (("model.py", "--batch-size", "0"), "batch size must be at least 1", ""),
        (("model.py", "--measure-time"), "--measure-time needs a GPU", "leave it out"),
        ((), "no target was given", "vramdoc profile model.py"),
    ],
)
def test_bad_input(
    asked: list[tuple[Asked, dict[str, Any]]],
    vramdoc: Callable[..., Ran],
    arguments: tuple[str, ...],
    message: str,
    hint: str,
) -> None:
    """One clear message and exit code 2, before anything is run."""
    ran = vramdoc("advise", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert hint in ran.err
    assert ran.out == ""
    assert asked == []

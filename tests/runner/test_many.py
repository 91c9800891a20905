"""Several profiles at once, on a stand-in for the profile itself."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.report.samples import gpt2
from vramdoc.errors import TargetError
from vramdoc.report import Report
from vramdoc.runner import many
from vramdoc.runner.many import Wanted, profile_many
from vramdoc.runner.progress import Progress


def names(count: int, gpu: str | None = "h100") -> list[Wanted]:
    return [Wanted(target=f"{index}.py", gpu=gpu) for index in range(count)]


def test_order_is_that_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last to be asked may be the first to end; all run at the same time."""
    started = threading.Barrier(3, timeout=20)
    last = threading.Event()

    def profile(target: str, **_: Any) -> Report:
        started.wait()  # no one gets past unless all three run
        if target == "2.py":
            last.set()
        last.wait(20)
        return replace(gpt2(), target=target)

    monkeypatch.setattr(many, "profile", profile)
    news: list[Progress] = []
    outcomes = profile_many(names(3), jobs=3, progress=news.append)
    assert [outcome.target for outcome in outcomes if isinstance(outcome, Report)] == ["0.py", "1.py", "2.py"]
    assert (news[-1].done, news[-1].total) == (3, 3)


def test_one_failure_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the user's code is the outcome of its own profile."""

    def profile(target: str, **_: Any) -> Report:
        if target == "1.py":
            raise TargetError("no model")
        return replace(gpt2(), target=target)

    monkeypatch.setattr(many, "profile", profile)
    first, second, third = profile_many(names(3), jobs=1)
    assert isinstance(second, TargetError)
    assert isinstance(first, Report)
    assert isinstance(third, Report)


def test_same_question_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two budgets of one target cost one profile."""
    asked = []

    def profile(target: str, **options: Any) -> Report:
        asked.append((target, options["batch_size"]))
        return gpt2()

    monkeypatch.setattr(many, "profile", profile)
    wanted = Wanted(target="a.py", gpu="h100")
    assert len(profile_many([wanted, replace(wanted, batch_size=4), wanted])) == 3
    assert sorted(asked, key=str) == [("a.py", 4), ("a.py", None)]


def test_real_gpu_is_measured_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs on one real GPU would take memory from each other."""
    running = []

    def profile(target: str, **_: Any) -> Report:
        running.append(target)
        assert len(running) == 1
        running.remove(target)
        return gpt2()

    monkeypatch.setattr(many, "profile", profile)
    assert len(profile_many(names(4, gpu=None), jobs=4)) == 4


def test_fault_of_ours_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw must not look like a result, in a thread neither."""

    def profile(*_: Any, **__: Any) -> Report:
        raise ZeroDivisionError

    monkeypatch.setattr(many, "profile", profile)
    with pytest.raises(ZeroDivisionError):
        profile_many(names(2), jobs=2)

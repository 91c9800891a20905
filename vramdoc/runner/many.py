"""Several profiles at once: each has a worker process of its own, so a thread for each is enough here."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from vramdoc.errors import VramdocError
from vramdoc.report import Report
from vramdoc.runner.profile import profile
from vramdoc.runner.progress import Listener, Progress, ignore

Outcome = Report | VramdocError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One profile to make; the fields mean what they mean to :func:`vramdoc.profile`."""

    target: str
    gpu: str | None = None
    batch_size: int | None = None
    steps: int | None = None
    timeout: float = 600.0
    assume: tuple[tuple[str, str], ...] = ()  # rule and choice


def profile_many(
    wanted: Sequence[Wanted], *, jobs: int | None = None, progress: Listener | None = None
) -> tuple[Outcome, ...]:
    """A report, or the error that there was instead, for each of ``wanted``, in its order.

    What is wanted twice is made once. At most ``jobs`` run at a time, by default as many as there are processors; one
    after another where a real GPU may be measured. Ctrl-C raises KeyboardInterrupt; the workers end with this process.
    """
    distinct = list(dict.fromkeys(wanted))
    listener = progress or ignore
    at_once = min(jobs or os.cpu_count() or 1, len(distinct)) if all(each.gpu for each in distinct) else 1
    outcomes = [_outcome(distinct[0], listener)] if len(distinct) == 1 else _Pool(distinct, listener).run(at_once)
    by_wanted = dict(zip(distinct, outcomes, strict=True))
    return tuple(by_wanted[each] for each in wanted)


class _Pool:
    """Threads that take one profile after another. Daemons: Ctrl-C must not wait for a run to end."""

    def __init__(self, wanted: Sequence[Wanted], listener: Listener) -> None:
        self._wanted = wanted
        self._listener = listener
        self._left = iter(range(len(wanted)))
        self._done: dict[int, Outcome | BaseException] = {}
        self._changed = threading.Condition()

    def run(self, jobs: int) -> list[Outcome]:
        """Every outcome, in order. What was no error of ours is raised here, as it would be without threads."""
        total = len(self._wanted)
        for _ in range(jobs):
            threading.Thread(target=self._work, daemon=True).start()
        with self._changed:
            while len(self._done) < total:
                self._changed.wait()
                self._listener(Progress(stage="profiling", done=len(self._done), total=total))
        return [_checked(self._done[index]) for index in range(total)]

    def _work(self) -> None:
        while (index := self._take()) is not None:
            outcome: Outcome | BaseException
            try:
                outcome = _outcome(self._wanted[index], ignore)
            except BaseException as error:  # noqa: BLE001 -- carried to the thread that waits for it
                outcome = error
            with self._changed:
                self._done[index] = outcome
                self._changed.notify()

    def _take(self) -> int | None:
        with self._changed:
            return next(self._left, None)


def _outcome(wanted: Wanted, listener: Listener) -> Outcome:
    try:
        return profile(
            wanted.target,
            gpu=wanted.gpu,
            batch_size=wanted.batch_size,
            steps=wanted.steps,
            timeout=wanted.timeout,
            assume=dict(wanted.assume) or None,
            progress=listener,
        )
    except VramdocError as error:
        return error


def _checked(outcome: Outcome | BaseException) -> Outcome:
    if isinstance(outcome, Report | VramdocError):
        return outcome
    raise outcome

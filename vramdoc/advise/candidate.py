"""What the search works on: a set of changes to one target, and what running it gave. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from vramdoc.advise import measures
from vramdoc.advise.cost import TimeEstimate
from vramdoc.report.measurement import Choice, Measurement, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A target with changes: ``choices`` in the order in which they are applied."""

    choices: tuple[Choice, ...] = ()
    batch_size: int | None = None  # on each GPU; None: the target's own
    place: Place | None = None  # None: one GPU, no process group

    @property
    def key(self) -> str:
        """The same for equal candidates only."""
        chosen = ";".join(f"{choice.name}{sorted(choice.options.items())}" for choice in self.choices)
        return f"{chosen}|{self.batch_size}|{self.place}"

    @property
    def gpus(self) -> int:
        """Ranks that run it together."""
        return self.place.world_size if self.place is not None else 1

    def of(self, axis: str) -> Choice | None:
        """The choice on ``axis``, if there is one."""
        for choice in self.choices:
            if measures.by_name(choice.name).axis == axis:
                return choice
        return None

    @property
    def replicas(self) -> int:
        """Ranks that train on a batch of their own: the ranks of a machine share one under tensor parallelism."""
        if self.place is None:
            return 1
        shared = any(choice.name == "tensor_parallel" for choice in self.choices)
        return self.place.world_size // (self.place.local_size if shared else 1)

    def without(self, axis: str) -> Candidate:
        """The same with nothing chosen on ``axis``."""
        return self._with(choice for choice in self.choices if measures.by_name(choice.name).axis != axis)

    def having(self, choice: Choice) -> Candidate | None:
        """The same with ``choice`` instead of what there is on its axis.

        None where another choice excludes it, or one lacks what it needs.
        """
        rest = self.without(measures.by_name(choice.name).axis)
        changed = self._with((*rest.choices, choice))
        names = {each.name for each in changed.choices}
        excludes = any(excluded(choice.name, other.name) for other in rest.choices)
        lacking = any(needed and not needed & names for name in names if (needed := measures.by_name(name).needs))
        return None if excludes or lacking else changed

    def _with(self, choices: Iterable[Choice]) -> Candidate:
        ordered = sorted(choices, key=lambda choice: (measures.by_name(choice.name).stage, choice.name))
        return Candidate(choices=tuple(ordered), batch_size=self.batch_size, place=self.place)


def excluded(first: str, second: str) -> bool:
    """Whether two measures cannot be taken together."""
    return second in measures.by_name(first).excludes or first in measures.by_name(second).excludes


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one candidate gave. Where it failed, ``error`` says why and the rest says nothing."""

    candidate: Candidate
    error: str = ""
    applies: bool = True  # False: a measure of it does not apply to this target, ``error`` is the reason
    allocated_bytes: int = 0
    reserved_bytes: int = 0
    samples: int = 1  # of all ranks in a step
    time: TimeEstimate | None = None  # modelled; None where nothing is known of time
    measurement: Measurement | None = field(default=None, compare=False)  # None in tests of the search

    @property
    def ok(self) -> bool:
        """Whether there is a peak."""
        return not self.error

    @property
    def seconds_per_sample(self) -> float:
        """Modelled; 0 where nothing is known of time, so that memory alone decides."""
        return self.time.seconds / self.samples if self.time is not None else 0.0


MeasureAll = Callable[[Sequence[Candidate]], list[Result]]
"""Runs candidates, side by side where it can, and gives their results in order."""


class Ledger:
    """Every result so far, so that nothing is measured twice."""

    def __init__(self, measure: MeasureAll) -> None:
        self._measure = measure
        self._found: dict[str, Result] = {}

    def add(self, result: Result) -> None:
        """Takes over a result that was measured elsewhere."""
        self._found[result.candidate.key] = result

    def close(self) -> None:
        """From here on nothing more is run: what is not known yet has failed."""
        self._measure = lambda candidates: [Result(candidate=each, error="not measured") for each in candidates]

    def measure(self, candidates: Sequence[Candidate]) -> list[Result]:
        """The results of ``candidates``, in order."""
        new = {each.key: each for each in candidates if each.key not in self._found}
        for key, result in zip(new, self._measure(list(new.values())) if new else [], strict=True):
            self._found[key] = result
        return [self._found[each.key] for each in candidates]

    def one(self, candidate: Candidate) -> Result:
        """The result of one candidate."""
        return self.measure([candidate])[0]

    def results(self) -> list[Result]:
        """All that has been measured, in the order it was."""
        return list(self._found.values())

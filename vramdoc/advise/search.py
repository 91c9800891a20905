"""Searches combinations of measures: a beam over the axes, then single changes to what it found. Pure.

A state is a candidate with its measured reserved peak and its modelled time for a sample. States that another beats in
both are dropped. What helps only beside something else (a fused optimizer once the peak is in the optimizer's step) is
found by the second pass, which tries every single change to the states of the front.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vramdoc.advise.blocks import tighten
from vramdoc.advise.candidate import Candidate, Ledger, Result
from vramdoc.advise.front import front, thin
from vramdoc.advise.options import ORDER
from vramdoc.report.measurement import Choice

WIDTH = 8
_ROUNDS = 2  # of single changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What the search may do."""

    choices: Mapping[str, Sequence[Choice]]  # by axis: every choice that applies and that the user allows
    allowed_bytes: int  # the reserved peak that fits
    saved_by_block: tuple[int, ...] = ()  # bytes live at the base's peak that each repeated block would save
    most: int = 240  # candidates; the search ends after the round that reaches it
    width: int = WIDTH


def search(ledger: Ledger, start: Sequence[Candidate], space: Space) -> list[Result]:
    """The front of what can be made of ``start``, fastest first."""
    beam = _pruned(ledger.measure(start), space)
    for group in ORDER:
        for axis in group:
            beam = _grown(ledger, beam, [axis], space)
        if "checkpointing" in group:
            beam = _pruned([*beam, *tighten(ledger, beam, space.allowed_bytes, space.saved_by_block)], space)
    for _ in range(_ROUNDS):
        before = [result.candidate.key for result in beam]
        beam = _grown(ledger, beam, [axis for group in ORDER for axis in group], space, removing=True)
        beam = _pruned([*beam, *tighten(ledger, beam, space.allowed_bytes, space.saved_by_block)], space)
        if [result.candidate.key for result in beam] == before or len(ledger.results()) >= space.most:
            break
    return front([*beam, *(result for result in ledger.results() if _comparable(result, start, space))])


def _comparable(result: Result, start: Sequence[Candidate], space: Space) -> bool:
    """Whether a result is of the search's own kind: allowed changes, as many samples on as many GPUs."""
    mine = result.candidate
    usable = {choice.name for choices in space.choices.values() for choice in choices}
    return any(
        (mine.place, mine.batch_size) == (first.place, first.batch_size)
        and {choice.name for choice in mine.choices} <= usable | {choice.name for choice in first.choices}
        for first in start
    )


def _grown(
    ledger: Ledger, beam: Sequence[Result], axes: Sequence[str], space: Space, *, removing: bool = False
) -> list[Result]:
    """The beam after every choice of ``axes`` was tried on each of its states."""
    tried = {
        changed.key: changed
        for result in beam
        for axis in axes
        for changed in _changed(result.candidate, axis, space, removing=removing)
    }
    return _pruned([*beam, *ledger.measure(list(tried.values()))], space)


def _changed(candidate: Candidate, axis: str, space: Space, *, removing: bool) -> Iterator[Candidate]:
    """``candidate`` with each other choice on one axis."""
    for choice in space.choices.get(axis, ()):
        changed = candidate.having(choice)
        if changed is not None and changed != candidate:
            yield changed
    if removing and axis != "sharding" and candidate.of(axis) is not None:
        yield candidate.without(axis)


def _pruned(results: Sequence[Result], space: Space) -> list[Result]:
    return thin(front(results), space.width, space.allowed_bytes)

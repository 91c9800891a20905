"""How many of the repeated blocks, and which, a measure has to take for the step to fit. Pure.

Blocks that save alike are taken from the first on, their number found by bisection. Of unlike ones those are taken that
save enough with the least to compute again: a knapsack over the bytes that each keeps at the peak. A block's time is
taken as proportional to the bytes that it keeps, which it has to write again. Every choice is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vramdoc.advise.candidate import Candidate, Ledger, Result
from vramdoc.advise.options import all_blocks
from vramdoc.report.measurement import Choice

ROUNDS = 5
_ALIKE = 0.05  # savings within this share of each other are the same
_UNITS = 512  # of the whole saving, that the knapsack counts in


@dataclass(frozen=True, slots=True)
class _Bracket:
    """Numbers of blocks between which the answer lies."""

    whole: Result  # with all blocks
    few: int  # does not fit
    many: int  # fits


def tighten(
    ledger: Ledger, results: Sequence[Result], allowed_bytes: int, saved_by_block: Sequence[int]
) -> list[Result]:
    """For every result that takes all repeated blocks, and fits: the same with as few of them as still fit."""
    total = len(saved_by_block)
    whole = [
        result
        for result in results
        if result.ok and result.reserved_bytes <= allowed_bytes and total > 1 and _choice(result.candidate) is not None
    ]
    if not whole:
        return []
    if max(saved_by_block) - min(saved_by_block) <= _ALIKE * max(saved_by_block):
        return _bisected(ledger, whole, allowed_bytes, total)
    return [found for result in whole if (found := _chosen(ledger, result, allowed_bytes, saved_by_block)) is not None]


def _bisected(ledger: Ledger, whole: Sequence[Result], allowed_bytes: int, total: int) -> list[Result]:
    brackets = [_Bracket(result, 0, total) for result in whole]
    for _ in range(ROUNDS):
        open_ones = [bracket for bracket in brackets if bracket.many - bracket.few > 1]
        middle = [_with_first(bracket.whole, (bracket.few + bracket.many) // 2) for bracket in open_ones]
        found = dict(zip(map(id, open_ones), ledger.measure(middle), strict=True))
        brackets = [_narrowed(each, found[id(each)], allowed_bytes) if id(each) in found else each for each in brackets]
    return [ledger.one(_with_first(bracket.whole, bracket.many)) for bracket in brackets if bracket.many < total]


def _narrowed(bracket: _Bracket, result: Result, allowed_bytes: int) -> _Bracket:
    middle = (bracket.few + bracket.many) // 2
    if result.ok and result.reserved_bytes <= allowed_bytes:
        return replace(bracket, many=middle)
    return replace(bracket, few=middle)


def _chosen(ledger: Ledger, whole: Result, allowed_bytes: int, saved: Sequence[int]) -> Result | None:
    """The cheapest set of blocks that fits. What a block saves is corrected by what the last choice did save."""
    none = ledger.one(whole.candidate.without("checkpointing"))
    if not none.ok or none.reserved_bytes <= allowed_bytes:
        return None
    wanted = none.reserved_bytes - allowed_bytes
    scale = 1.0
    best: Result | None = None
    for _ in range(ROUNDS):
        taken = knapsack(saved, wanted / scale)
        if not taken or len(taken) == len(saved):
            break
        result = ledger.one(_with_these(whole, taken))
        expected = sum(saved[index] for index in taken)
        if result.ok and result.reserved_bytes <= allowed_bytes:
            if best is None or result.seconds_per_sample <= best.seconds_per_sample:
                best = result
            break
        scale = max((none.reserved_bytes - result.reserved_bytes) / expected, 0.05) if result.ok and expected else 0.05
    return best


def knapsack(values: Sequence[int], wanted: float) -> tuple[int, ...]:
    """Indices whose ``values`` add up to at least ``wanted``, by as little as can be; () where all are too few.

    Exact to 1 / 512 of the sum: each value is rounded down to that.
    """
    unit = max(sum(values) / _UNITS, 1.0)
    least = -int(-wanted // unit)
    if sum(int(value // unit) for value in values) < least:
        return tuple(range(len(values))) if sum(values) >= wanted else ()
    reached: dict[int, tuple[int, ...]] = {0: ()}
    for index, value in enumerate(values):
        weight = int(value // unit)
        for total, taken in sorted(reached.items(), reverse=True):
            if total < least and weight and total + weight not in reached:
                reached[total + weight] = (*taken, index)
    return reached[min(total for total in reached if total >= least)]


def _choice(candidate: Candidate) -> Choice | None:
    choice = candidate.of("checkpointing")
    return choice if choice is not None and all_blocks(choice) else None


def _with_first(whole: Result, count: int) -> Candidate:
    return _limited(whole, "blocks", count)


def _with_these(whole: Result, taken: Sequence[int]) -> Candidate:
    return _limited(whole, "which", ",".join(map(str, taken)))


def _limited(whole: Result, option: str, value: int | str) -> Candidate:
    choice = _choice(whole.candidate)
    assert choice is not None, "only those that take all blocks are limited"
    changed = whole.candidate.having(replace(choice, options={**choice.options, option: value}))
    assert changed is not None, "it was there before"
    return changed

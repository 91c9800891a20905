"""From the front to the few plans that are shown, each without a change that earns nothing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vramdoc.advise import measures
from vramdoc.advise.candidate import Candidate, Ledger, Result
from vramdoc.advise.front import fastest_fitting, front, thin

FASTEST, SMALLEST, BETWEEN = "fastest that fits", "smallest", "between"
_BETWEEN = 2  # plans shown between the two
_SAME_TIME = 0.005


def choose(ledger: Ledger, found: Sequence[Result], allowed_bytes: int) -> list[tuple[str, Result]]:
    """The plans to show, with what each is: the fastest that fits, some between, the smallest; fastest first.

    Where nothing fits there is only the smallest.
    """
    results = [result for result in found if result.ok]
    if not results:
        return []
    smallest = _simplified(ledger, min(results, key=lambda result: result.reserved_bytes), None)
    best = fastest_fitting(results, allowed_bytes)
    if best is None:
        return [(SMALLEST, smallest)]
    fastest = _simplified(ledger, best, allowed_bytes)
    rest = [
        result
        for result in front(results)
        if smallest.reserved_bytes < result.reserved_bytes < fastest.reserved_bytes
        and result.seconds_per_sample >= fastest.seconds_per_sample
    ]
    spread = thin([fastest, *rest, smallest], _BETWEEN + 2, allowed_bytes)[1:-1]
    between = [(BETWEEN, _simplified(ledger, result, result.reserved_bytes)) for result in spread]
    plans = [(FASTEST, fastest), *between, (SMALLEST, smallest)]
    return list({result.candidate.key: (label, result) for label, result in reversed(plans)}.values())[::-1]


def prefixes(candidate: Candidate) -> list[Candidate]:
    """The candidate with its first change only, with its first two, and so on to all of them.

    Until a strategy for several GPUs is among them it is one GPU.
    """
    found = []
    for count in range(1, len(candidate.choices) + 1):
        taken = candidate.choices[:count]
        sharded = any(measures.by_name(choice.name).axis == "sharding" for choice in taken)
        found.append(replace(candidate, choices=taken, place=candidate.place if sharded else None))
    return found


def _simplified(ledger: Ledger, result: Result, allowed_bytes: int | None) -> Result:
    """``result`` without the changes that it is as good without: within the bytes, and no slower.

    ``allowed_bytes`` None stands for its own peak.
    """
    while True:
        limit = result.reserved_bytes if allowed_bytes is None else allowed_bytes
        shorter = [
            replace(result.candidate, choices=tuple(each for each in result.candidate.choices if each != choice))
            for choice in result.candidate.choices
            if measures.by_name(choice.name).axis != "sharding"  # several ranks without it are no plan
            and not any(choice.name in measures.by_name(other.name).needs for other in result.candidate.choices)
        ]
        slowest = result.seconds_per_sample * (1 + _SAME_TIME)
        as_good = [
            each
            for each in ledger.measure(shorter)
            if each.ok and each.reserved_bytes <= limit and each.seconds_per_sample <= slowest
        ]
        if not as_good:
            return result
        result = min(as_good, key=lambda each: (each.seconds_per_sample, each.reserved_bytes))

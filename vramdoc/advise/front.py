"""The front of memory against time: what is not beaten in both by anything else. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from vramdoc.advise.candidate import Result

_SAME_TIME = 0.002
"""Times closer than this are the same: the model knows no better, and fewer changes are better."""


def front(results: Iterable[Result]) -> list[Result]:
    """Those that nothing beats in reserved bytes and time for a sample, fastest first; of equals the simplest."""
    ordered = sorted(
        (result for result in results if result.ok),
        key=lambda result: (result.reserved_bytes, result.seconds_per_sample, len(result.candidate.choices)),
    )
    kept: list[Result] = []
    fastest = math.inf
    for result in ordered:
        if result.seconds_per_sample < fastest * (1 - _SAME_TIME) or not kept:
            kept.append(result)
            fastest = result.seconds_per_sample
    return _simplest(kept[::-1], ordered)


def _simplest(kept: list[Result], ordered: list[Result]) -> list[Result]:
    """Each of ``kept``, or a result as good with fewer changes: of as few bytes and the same time."""
    found = []
    for best in kept:
        equals = [
            result
            for result in ordered
            if result.reserved_bytes <= best.reserved_bytes
            and result.seconds_per_sample <= best.seconds_per_sample * (1 + _SAME_TIME)
        ]
        found.append(min([best, *equals], key=lambda result: len(result.candidate.choices)))
    return found


def thin(results: Sequence[Result], width: int, allowed_bytes: int) -> list[Result]:
    """At most ``width`` of a front: its ends, the fastest that fits, and others evenly in the logarithm of bytes."""
    if len(results) <= width:
        return list(results)
    must = {0, len(results) - 1}
    fitting = fastest_fitting(results, allowed_bytes)
    if fitting is not None:
        must.add(results.index(fitting))
    places = [math.log(max(result.reserved_bytes, 1)) for result in results]
    while len(must) < width:
        # The one that is farthest from all that are taken.
        rest = (index for index in range(len(results)) if index not in must)
        must.add(max(rest, key=lambda index: min(abs(places[index] - places[taken]) for taken in must)))
    return [results[index] for index in sorted(must)]


def fastest_fitting(results: Iterable[Result], allowed_bytes: int) -> Result | None:
    """The fastest whose reserved peak is within ``allowed_bytes``; of equals the smallest."""
    fitting = [result for result in results if result.ok and result.reserved_bytes <= allowed_bytes]
    return min(fitting, key=lambda result: (result.seconds_per_sample, result.reserved_bytes), default=None)

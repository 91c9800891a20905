"""The timeline of a step at the resolution of a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vramdoc.report import TimelinePoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of chart columns that lie in one phase."""

    phase: str
    start: int  # first column
    length: int  # columns


def resample(points: Sequence[TimelinePoint], columns: int) -> tuple[TimelinePoint, ...]:
    """``columns`` points, each the highest of its share of ``points``: no spike is lost."""
    count = len(points)
    if not count:
        return ()
    bounds = [column * count // columns for column in range(columns + 1)]
    return tuple(
        max(points[start : max(end, start + 1)], key=lambda point: point.allocated_bytes)
        for start, end in pairwise(bounds)
    )


def peak_column(points: Sequence[TimelinePoint]) -> int:
    """Index of the highest point, the first of equals."""
    return max(range(len(points)), key=lambda index: points[index].allocated_bytes)


def spans(points: Sequence[TimelinePoint]) -> tuple[Span, ...]:
    """The phases under the columns, in order."""
    found: list[Span] = []
    for column, point in enumerate(points):
        if found and found[-1].phase == point.phase:
            last = found.pop()
            found.append(Span(phase=last.phase, start=last.start, length=last.length + 1))
        else:
            found.append(Span(phase=point.phase, start=column, length=1))
    return tuple(found)

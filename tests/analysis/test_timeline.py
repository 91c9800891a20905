"""The timeline at the resolution of a chart."""

from __future__ import annotations

import pytest

from tests.report.samples import gpt2
from vramdoc.analysis.timeline import Span, peak_column, resample, spans
from vramdoc.report import TimelinePoint


def points(*sizes: int, phase: str = "forward") -> list[TimelinePoint]:
    """One point a size."""
    return [TimelinePoint(phase=phase, allocated_bytes=size, categories={"activations": size}) for size in sizes]


@pytest.mark.parametrize("columns", [1, 2, 7, 66, 155, 1000])
def test_the_peak_survives_every_width(columns: int) -> None:
    """A spike of one operation is what the chart is for: no width may lose it."""
    resampled = resample(gpt2().timeline, columns)
    assert len(resampled) == columns
    assert resampled[peak_column(resampled)].allocated_bytes == gpt2().peak.allocated_bytes


def test_each_column_is_the_highest_of_its_share() -> None:
    """Two points a column: the higher of each."""
    assert [point.allocated_bytes for point in resample(points(1, 5, 2, 3, 9, 0), 3)] == [5, 3, 9]


def test_few_points_are_stretched() -> None:
    """A chart is as wide as asked, with two points too."""
    assert [point.allocated_bytes for point in resample(points(1, 2), 4)] == [1, 1, 2, 2]


def test_no_points() -> None:
    """An empty timeline stays empty."""
    assert resample([], 10) == ()


def test_spans_follow_the_phases() -> None:
    """A phase that comes twice is two spans."""
    row = [*points(1, 2), *points(3, phase="loss"), *points(1)]
    assert spans(row) == (
        Span(phase="forward", start=0, length=2),
        Span(phase="loss", start=2, length=1),
        Span(phase="forward", start=3, length=1),
    )

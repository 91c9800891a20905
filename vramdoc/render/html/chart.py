"""The timeline as inline SVG: stacked areas, the phases below, the peak and the GPU's end marked."""

from __future__ import annotations

from collections.abc import Sequence

from vramdoc.analysis.shares import STACKING
from vramdoc.analysis.timeline import peak_column, resample, spans
from vramdoc.render.html.build import Element, element
from vramdoc.render.style import CATEGORY_COLORS, label
from vramdoc.report import Report, TimelinePoint
from vramdoc.units import format_bytes

_COLUMNS = 480
_WIDTH, _HEIGHT = 960, 260  # of the area, in SVG units
_TOP, _BOTTOM = 26, 26  # room for the marks above and the phases below
_NARROWEST_LABEL = 60
_LETTER = 7  # width of one, about


def timeline(report: Report) -> Element | None:
    """The chart; None where the report has no timeline."""
    columns = resample(report.timeline, min(_COLUMNS, len(report.timeline)))
    if not columns:
        return None
    highest = max(columns[peak_column(columns)].allocated_bytes, 1)
    chart = element(
        "svg",
        *_areas(columns, highest),
        *_phases(columns),
        *_marks(report, columns, highest),
        viewBox=f"0 0 {_WIDTH} {_TOP + _HEIGHT + _BOTTOM}",
        role="img",
        aria_label=f"allocated memory over the step, up to {format_bytes(highest)}",
    )
    return chart


def _areas(columns: Sequence[TimelinePoint], highest: int) -> list[Element]:
    """One polygon a category, each on top of those before it."""
    ground = [0] * len(columns)
    areas = []
    for name in STACKING:
        sizes = [point.categories.get(name, 0) for point in columns]
        if not any(sizes):
            continue
        top = [low + size for low, size in zip(ground, sizes, strict=True)]
        outline = _steps(top, highest) + _steps(ground, highest)[::-1]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)
        title = element("title", f"{label(name)}: up to {format_bytes(max(sizes))}")
        areas.append(element("polygon", title, points=points, fill=CATEGORY_COLORS[name]))
        ground = top
    return areas


def _steps(sizes: Sequence[int], highest: int) -> list[tuple[float, float]]:
    """The outline of ``sizes`` as flat steps, left to right."""
    outline = []
    for column, size in enumerate(sizes):
        y = _TOP + _HEIGHT * (1 - size / highest)
        outline += [(_x(column, len(sizes)), y), (_x(column + 1, len(sizes)), y)]
    return outline


def _phases(columns: Sequence[TimelinePoint]) -> list[Element]:
    """A line where each phase begins, and its name where there is room."""
    parts = []
    for span in spans(columns):
        left, right = _x(span.start, len(columns)), _x(span.start + span.length, len(columns))
        parts.append(_line(left, _TOP, left, _TOP + _HEIGHT + 6))
        if right - left >= min(_NARROWEST_LABEL, _LETTER * len(span.phase)):
            name = label(span.phase)
            parts.append(element("text", name, x=f"{left + 4:.1f}", y=str(_TOP + _HEIGHT + 18)))
    return parts


def _marks(report: Report, columns: Sequence[TimelinePoint], highest: int) -> list[Element]:
    """The peak, and the GPU's end where the area reaches beyond it."""
    column = peak_column(columns)
    x = _x(column, len(columns)) + _WIDTH / len(columns) / 2
    anchor = "end" if x > _WIDTH * 0.75 else "start"
    text = f"peak {format_bytes(highest)}"
    marks = [
        _line(x, _TOP - 8, x, _TOP + _HEIGHT, class_="mark"),
        element("text", text, x=f"{x + (6 if anchor == 'start' else -6):.1f}", y="14", text_anchor=anchor),
    ]
    room = report.device.total_bytes - (report.peak.context_bytes or 0)
    if room < highest:
        y = _TOP + _HEIGHT * (1 - room / highest)
        marks.append(_line(0, y, _WIDTH, y, class_="full"))
        marks.append(element("text", "the GPU is full here", x=str(_WIDTH - 4), y=f"{y - 5:.1f}", text_anchor="end"))
    return marks


def _line(x1: float, y1: float, x2: float, y2: float, *, class_: str = "") -> Element:
    return element("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=class_)


def _x(column: int, count: int) -> float:
    return _WIDTH * column / count

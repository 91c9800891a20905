"""Third question: when. A stacked chart of the step that holds the peak, and the phases in figures."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from vramdoc.analysis.shares import STACKING
from vramdoc.analysis.timeline import peak_column, resample, spans
from vramdoc.render import sentences
from vramdoc.render.style import BAD, CATEGORY_COLORS, label
from vramdoc.render.terminal.canvas import EIGHTHS_UP, INDENT, Canvas, Column
from vramdoc.report import Report, TimelinePoint
from vramdoc.report.model import Category
from vramdoc.units import format_bytes

_ROWS = 10  # of the chart in a view of one column, its title and marks included
_AXIS = 11  # columns of the scale: "10.25 GiB │"
_PEAK = "▼"


def chart(report: Report, canvas: Canvas, *, rows: int = _ROWS) -> RenderableType | None:
    """The chart, ``rows`` rows with its title; None where the report has no timeline."""
    columns = resample(report.timeline, canvas.width - INDENT - _AXIS - 1)
    if not columns:
        return None
    title = canvas.title("When", sentences.TIMELINE)
    room = report.device.total_bytes - (report.peak.context_bytes or 0)
    return Group(title, *_area(columns, room, max(rows, _ROWS) - 3))


def _area(columns: Sequence[TimelinePoint], room: int, height: int) -> list[RenderableType]:
    """Rows from the top down: the peak's mark, ``height`` rows of area, the phases below it.

    Where the area rises above the ``room`` that the GPU has, a line says where that ends.
    """
    highest = columns[peak_column(columns)].allocated_bytes or 1
    margin = INDENT + _AXIS
    full = int(room / highest * height) if room < highest else height
    rows: list[RenderableType] = [Text(" " * (margin + peak_column(columns)) + _PEAK, style="bold")]
    for level in reversed(range(height)):
        scale = {height - 1: format_bytes(highest), 0: "0", full: "GPU full"}.get(level, "")
        line = Text().append(f"{scale:>{margin - 2}} ", style=BAD if level == full else "dim")
        line.append("│", style="dim")
        for point in columns:
            glyph, color = _cell(point, highest, level, height)
            line.append("╌" if level == full and not color else glyph, style=color or BAD)
        rows.append(line)
    rows.append(_phase_names(columns, margin))
    return rows


def _cell(point: TimelinePoint, highest: int, level: int, height: int) -> tuple[str, str]:
    """The character of one column at ``level`` rows from the ground, in the colour of what fills most of it."""
    row = highest / height  # bytes
    eighths = min(max(round(8 * (point.allocated_bytes / row - level)), 0), 8)
    if not eighths:
        return " ", ""
    return EIGHTHS_UP[eighths], CATEGORY_COLORS[_largest_between(point, level * row, (level + 1) * row)]


def _largest_between(point: TimelinePoint, low: float, high: float) -> Category:
    """The category that takes most of the stack between two heights."""
    shares: dict[Category, float] = {}
    ground = 0
    for name in STACKING:
        top = ground + point.categories.get(name, 0)
        shares[name] = min(top, high) - max(ground, low)
        ground = top
    return max(shares, key=lambda name: shares[name])


def _phase_names(columns: Sequence[TimelinePoint], margin: int) -> Text:
    """Each phase's name below its columns, left out where it has no room."""
    line = Text(" " * margin)
    for span in spans(columns):
        name = label(span.phase)
        if len(name) + 1 > span.length:
            name = ""
        line.append(f"{name:<{span.length}}", style="dim")
    line.rstrip()
    return line


def phases(report: Report, canvas: Canvas) -> RenderableType | None:
    """Peak and end of every phase, the one with the peak marked; None where the report has none."""
    if not report.phases:
        return None
    rows = []
    for phase in report.phases:
        style = "bold" if phase.name == report.peak.phase else ""
        rows.append(
            [
                Text(label(phase.name), style=style),
                Text(format_bytes(phase.peak_bytes), style=style),
                Text(format_bytes(phase.end_bytes)),
                Text("the peak" if style else "", style="dim"),
            ]
        )
    columns = (
        Column(head="phase", width=11),
        Column(head="peak", number=True, width=11),
        Column(head="at its end", number=True, width=11),
        Column(ratio=1),
    )
    return canvas.table(columns, rows)

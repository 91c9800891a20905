"""Second question: what fills the peak."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from vramdoc.analysis.shares import fraction, peak_shares
from vramdoc.render.sentences import peak_moment
from vramdoc.render.style import CATEGORY_COLORS, label, percent
from vramdoc.render.terminal.canvas import INDENT, Canvas, bar, widest
from vramdoc.report import Report
from vramdoc.units import format_bytes

_WIDEST_BAR = 44


def bars(report: Report, canvas: Canvas) -> RenderableType:
    """One line a category: its name, size, share of the peak, and a bar."""
    rows = peak_shares(report)
    names = widest([label(name) for name, _ in rows])
    sizes = widest([format_bytes(size) for _, size in rows])
    room = min(canvas.width - INDENT - names - sizes - 16, _WIDEST_BAR)
    largest = max((size for _, size in rows), default=1)
    lines: list[RenderableType] = [canvas.title("What fills the peak", peak_moment(report))]
    for name, size in rows:
        color = CATEGORY_COLORS[name]
        line = Text(" " * INDENT)
        line.append("■ ", style=color)
        line.append(f"{label(name):<{names}}  {format_bytes(size):>{sizes}}  ")
        line.append(f"{percent(fraction(size, report.peak.allocated_bytes)):>7}", style="dim")
        line.append("  " + bar(fraction(size, largest), room), style=color)
        lines.append(line)
    return Group(*lines)

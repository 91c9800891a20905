"""The terminal view of a report: does it fit, what fills the peak, when, where, and what to run next."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding

from vramdoc.analysis.shares import peak_shares
from vramdoc.render.terminal.canvas import Canvas, ColorSystem, draw, to_ascii, view_canvas
from vramdoc.render.terminal.notes import assumptions, growth, next_commands, warnings
from vramdoc.render.terminal.peak import bars
from vramdoc.render.terminal.tables import blocks, lines, modules
from vramdoc.render.terminal.timeline import chart, phases
from vramdoc.render.terminal.verdict import summary, verdict
from vramdoc.report import Report

_SIDE_BY_SIDE = 112
_GAP = 4

__all__ = ["ColorSystem", "layout", "render", "summary_line"]


def render(report: Report, *, width: int = 80, color: ColorSystem | None = None, ascii_only: bool = False) -> str:
    """The view in ``width`` columns; ``color`` is what the terminal can show, None for plain text."""
    canvas = view_canvas(width, ascii_only=ascii_only)
    return draw(layout(report, canvas), canvas, color)


def summary_line(report: Report, *, ascii_only: bool = False) -> str:
    """The verdict alone, on one line."""
    text = summary(report, view_canvas(80, ascii_only=ascii_only)).plain
    return (to_ascii(text) if ascii_only else text) + "\n"


def layout(report: Report, canvas: Canvas) -> RenderableType:
    """All sections, one blank line between them; those that have nothing to say are left out."""
    return _spaced(
        [
            verdict(report, canvas),
            _peak_and_time(report, canvas),
            modules(report, canvas),
            lines(report, canvas),
            blocks(report, canvas),
            growth(report, canvas),
            assumptions(report, canvas),
            warnings(report, canvas),
            next_commands(report, canvas),
        ]
    )


def _peak_and_time(report: Report, canvas: Canvas) -> RenderableType:
    """What fills the peak, and when: beside each other where there is room."""
    if canvas.width < _SIDE_BY_SIDE:
        return _spaced([bars(report, canvas), chart(report, canvas), phases(report, canvas)])
    half = canvas.narrowed((canvas.width - _GAP) // 2)
    left_rows = len(peak_shares(report)) + len(report.phases) + 3
    left = _spaced([bars(report, half), phases(report, half)])
    right = chart(report, half, rows=left_rows)
    return left if right is None else half.side_by_side(left, right, gap=_GAP)


def _spaced(sections: Sequence[RenderableType | None]) -> RenderableType:
    present = [section for section in sections if section is not None]
    return Group(*(Padding(section, (0, 0, 1, 0)) for section in present[:-1]), *present[-1:])

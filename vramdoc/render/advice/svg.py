"""The terminal view of advice as a picture."""

from __future__ import annotations

from vramdoc.render.advice.terminal import layout
from vramdoc.render.svg import picture
from vramdoc.render.terminal.canvas import view_canvas
from vramdoc.report.advice import AdviceReport


def render(report: AdviceReport, *, width: int = 100) -> str:
    """The view in ``width`` columns, light on dark."""
    canvas = view_canvas(width)
    return picture(layout(report, canvas), canvas.width, title=f"vramdoc advise {report.target}")

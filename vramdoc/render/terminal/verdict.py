"""First question: does it fit, and with what to spare."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from vramdoc.analysis.shares import fraction
from vramdoc.analysis.verdict import Verdict, judge
from vramdoc.render import sentences
from vramdoc.render.style import BAD, CATEGORY_COLORS, OUTCOME_COLORS, OUTCOME_MARKS, percent
from vramdoc.render.terminal.canvas import INDENT, Canvas
from vramdoc.report import Report
from vramdoc.units import format_bytes

_ALLOCATED = CATEGORY_COLORS["parameters"]
_CACHED = CATEGORY_COLORS["buffers"]
_CONTEXT = CATEGORY_COLORS["workspace"]
_SCALE_ROOM = 24  # columns for the figures beside the bar


def verdict(report: Report, canvas: Canvas) -> RenderableType:
    """The headline, the memory of the GPU as one bar, its parts, and what a limit does."""
    judged = judge(report)
    subject = Text(canvas.safe(sentences.subject(report)), style="dim")
    subject.truncate(canvas.width, overflow="ellipsis")
    parts: list[RenderableType] = [
        subject,
        summary(report, canvas),
        canvas.paragraph(sentences.basis(report), style="dim"),
        Text(),
        _memory_bar(judged, report.device.total_bytes, canvas),
        canvas.paragraph(sentences.need(report)),
    ]
    parts += [canvas.paragraph(line) for line in sentences.limit(report)]
    return Group(*parts)


def summary(report: Report, canvas: Canvas) -> Text:
    """The headline with its mark."""
    outcome = judge(report).outcome
    style = f"bold {OUTCOME_COLORS[outcome]}"
    return Text(f"{OUTCOME_MARKS[outcome]} {canvas.safe(sentences.headline(report))}", style=style)


def _memory_bar(judged: Verdict, total: int, canvas: Canvas) -> Text:
    """Allocated, cached, context and free, to scale; what lies beyond the GPU's total is red, behind a mark."""
    width = canvas.width - INDENT - _SCALE_ROOM
    whole = max(judged.need_bytes, total, 1)
    parts = (
        ("█", _ALLOCATED, judged.allocated_bytes),
        ("▓", _CACHED, judged.cached_bytes),
        ("▒", _CONTEXT, judged.context_bytes),
        ("░", "dim", whole - judged.need_bytes),
    )
    line = Text(" " * INDENT)
    edge = round(width * total / whole)
    drawn, start = 0, 0
    for glyph, style, size in parts:
        drawn += size
        end = round(width * drawn / whole)
        for column in range(start, end):
            line.append(glyph, style=BAD if column >= edge else style)
        start = end
    used = fraction(judged.need_bytes, total)
    line.append(f"  {percent(used)} of {format_bytes(total)}")
    return line

"""What to know of the figures, and what to run next."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from vramdoc.analysis.next_steps import next_steps
from vramdoc.render import sentences
from vramdoc.render.style import BAD, CAREFUL, GOOD, clean, place
from vramdoc.render.terminal.canvas import INDENT, Canvas, Column, fit_end, widest
from vramdoc.report import Report

_PLACE = 36  # columns, at most, for file and line


def growth(report: Report, canvas: Canvas) -> RenderableType:
    """Whether memory grows from step to step, and whether the values are exact: one line each."""
    size = report.growth_bytes_per_step
    mark, style = ("✓", GOOD) if size == 0 else ("!", CAREFUL) if size < 0 else ("✗", BAD)
    rows: list[RenderableType] = [canvas.paragraph(sentences.growth(report), mark=mark, mark_style=style)]
    if report.values.exact:
        rows.append(canvas.paragraph(sentences.exactness(report), mark="✓", mark_style=GOOD))
    return Group(*rows)


def assumptions(report: Report, canvas: Canvas) -> RenderableType | None:
    """Every value that had to be assumed, by which rule and where, and what that can change."""
    if report.values.exact:
        return None
    parts: list[RenderableType] = [canvas.paragraph(sentences.exactness(report), mark="!", mark_style=CAREFUL)]
    found = report.values.assumptions
    places = [canvas.safe(place(row.file, row.line)) for row in found]
    room = min(widest(places), _PLACE)
    columns = (
        Column(head="rule", width=min(widest([canvas.safe(row.rule) for row in found] + ["rule"]), 20)),
        Column(head="operation", ratio=1),
        Column(head="reads", number=True, width=5),
        Column(head="at", width=max(room, 2)),
    )
    rows = [
        [
            Text(canvas.safe(row.rule)),
            Text(canvas.safe(row.op), style="dim"),
            Text(f"{row.reads:,}", style="dim"),
            Text(fit_end(spot, room)),
        ]
        for row, spot in zip(found, places, strict=True)
    ]
    if rows:
        parts.append(canvas.table(columns, rows))
    if between := sentences.value_range(report):
        parts.append(canvas.paragraph(between))
    return Group(*parts)


def warnings(report: Report, canvas: Canvas) -> RenderableType | None:
    """What the reader must be warned of."""
    found = sentences.cautions(report)
    if not found:
        return None
    rows = [canvas.paragraph(text[:1].upper() + text[1:], mark="!", mark_style=CAREFUL) for text in found]
    return Group(*rows)


def next_commands(report: Report, canvas: Canvas) -> RenderableType:
    """Commands to copy, whole, each below the question that it answers."""
    rows: list[RenderableType] = [canvas.title("Next")]
    steps = next_steps(report)
    commands = widest([clean(step.command, ascii_only=canvas.ascii_only) for step in steps])
    reasons = widest([step.reason for step in steps])
    beside = INDENT + commands + 2 + reasons <= canvas.width
    for step in steps:
        if beside:
            line = Text(" " * INDENT + f"{canvas.safe(step.command):<{commands}}  ")
            rows.append(line.append(step.reason, style="dim"))
        else:
            rows += [canvas.paragraph(step.reason, style="dim"), canvas.paragraph(step.command)]
    return Group(*rows)

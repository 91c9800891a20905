"""A comparison for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from vramdoc.analysis.difference import Difference
from vramdoc.render.difference.sentences import Row, Section, headline, sections, signed, subject
from vramdoc.render.style import BAD, GOOD
from vramdoc.render.terminal.canvas import Canvas, ColorSystem, Column, draw, view_canvas
from vramdoc.units import format_bytes

_ROWS = 12
_SIZE = 11  # columns of a signed size: "+1023.9 MiB"


def render(found: Difference, *, width: int = 80, color: ColorSystem | None = None, ascii_only: bool = False) -> str:
    """The headline, then a table for each way to look at it."""
    canvas = view_canvas(width, ascii_only=ascii_only)
    parts: list[RenderableType] = [Text(canvas.safe(headline(found)), style="bold")]
    parts += [Text(canvas.safe(line), style="dim") for line in subject(found)]
    for section in () if found.is_empty else sections(found):
        parts += [Text(), *_section(section, canvas)]
    return draw(Group(*parts), canvas, color)


def _section(section: Section, canvas: Canvas) -> list[RenderableType]:
    columns = (
        Column(head="change", number=True, width=_SIZE),
        Column(head="before", number=True, width=_SIZE),
        Column(head="after", number=True, width=_SIZE),
        Column(ratio=1),
    )
    shown = section.rows[:_ROWS]
    rest = len(section.rows) - len(shown)
    parts: list[RenderableType] = [
        canvas.title(section.title),
        canvas.table(columns, [_row(row, canvas) for row in shown]),
    ]
    if rest:
        parts.append(Text(f"  and {rest} more", style="dim"))
    return parts


def _row(row: Row, canvas: Canvas) -> list[Text | str]:
    style = BAD if row.grown > 0 else GOOD if row.grown < 0 else "dim"
    name = Text(canvas.safe(row.name))
    if row.detail:
        name = Text("\n").join([name, Text(canvas.safe(row.detail), style="dim")])
    return [
        Text(signed(row.grown) if row.grown else "-", style=style),
        Text(format_bytes(row.before)),
        Text(format_bytes(row.after)),
        name,
    ]

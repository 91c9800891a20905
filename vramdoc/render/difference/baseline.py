"""What a baseline holds, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from vramdoc.analysis.footprint import Footprint
from vramdoc.render.terminal.canvas import Canvas, ColorSystem, Column, draw, view_canvas
from vramdoc.units import format_bytes

_SIZE = 10


def render_baseline(
    entries: Mapping[str, Footprint],
    *,
    with_modules: bool = False,
    width: int = 80,
    color: ColorSystem | None = None,
    ascii_only: bool = False,
) -> str:
    """A block for each entry, sorted by name."""
    canvas = view_canvas(width, ascii_only=ascii_only)
    if not entries:
        return "The baseline is empty.\n"
    blocks = [_entry(name, entries[name], canvas, with_modules=with_modules) for name in sorted(entries)]
    parts = [part for block in blocks for part in (block, Text())]
    return draw(Group(*parts[:-1]), canvas, color)


def _entry(name: str, entry: Footprint, canvas: Canvas, *, with_modules: bool) -> RenderableType:
    totals = ", ".join(f"{format_bytes(entry.totals[key])} {key}" for key in ("allocated", "reserved", "device"))
    parts: list[RenderableType] = [
        canvas.title(canvas.safe(name), totals),
        canvas.paragraph(f"{entry.target}, batch {entry.batch_size}, {entry.device}, torch {entry.torch}"),
    ]
    if with_modules:
        rows = sorted(entry.modules.items(), key=lambda item: item[0].split("."))
        columns = (Column(number=True, width=_SIZE), Column(ratio=1))
        parts.append(
            canvas.table(columns, [(format_bytes(size), canvas.safe(module or "the model")) for module, size in rows])
        )
    return Group(*parts)

"""Fourth question: where. Modules, source lines and the largest single blocks."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from vramdoc.analysis.modules import ModuleLine, module_lines
from vramdoc.analysis.shares import fraction
from vramdoc.render import sentences
from vramdoc.render.style import CATEGORY_COLORS, MODULE_PARTS, label, percent, place
from vramdoc.render.terminal.canvas import INDENT, Canvas, Column, fit_end, widest
from vramdoc.report import Block, Report
from vramdoc.units import format_bytes

_MODULES, _LINES, _BLOCKS = 14, 6, 5
_LEAST_SHARE = 0.005  # of the peak: what a module must hold to be shown
_WIDE = 100
_WIDER = 112
_SIZE = 10  # columns of a size: "1023.9 MiB"
_PLACE = 0.4  # of the width, at most, for file and line


def modules(report: Report, canvas: Canvas) -> RenderableType | None:
    """The module tree with what each holds at the peak; columns that are zero throughout are left out."""
    least = int(report.peak.allocated_bytes * _LEAST_SHARE)
    shown = module_lines(report.modules, limit=_MODULES, least_bytes=least)
    if not shown:
        return None
    parts = [(head, name) for head, name in MODULE_PARTS if any(getattr(line.sizes, name) for line in shown)]
    if canvas.width < _WIDE:
        parts = [part for part in parts if part[0] != "other"]
    with_class = canvas.width >= _WIDER
    columns = [Column(head="module", ratio=1)]
    if with_class:
        columns.append(Column(head="class", width=min(widest([canvas.safe(line.class_name) for line in shown]), 20)))
    columns += [Column(head=head, number=True, width=max(_SIZE, len(head))) for head, _ in parts]
    columns.append(Column(head="total", number=True, width=_SIZE))
    rows = [_module_row(line, parts, canvas, with_class=with_class) for line in shown]
    title = canvas.title("Where, by module", sentences.MODULES)
    return Group(title, canvas.table(columns, rows))


def _module_row(
    line: ModuleLine, parts: list[tuple[str, str]], canvas: Canvas, *, with_class: bool
) -> list[Text | str]:
    name = canvas.safe(line.label) or "model"
    if name.isdecimal() and not with_class:  # an entry of a Sequential: its number says nothing
        name = f"{name} {canvas.safe(line.class_name)}"
    row: list[Text | str] = [
        Text("  " * line.depth + name + (f" ({line.count}\N{MULTIPLICATION SIGN})" if line.count > 1 else ""))
    ]
    if with_class:
        row.append(Text(canvas.safe(line.class_name), style="dim"))
    for _, field in parts:
        size = getattr(line.sizes, field)
        row.append(Text(format_bytes(size)) if size else Text("-", style="dim"))
    return [*row, Text(format_bytes(line.sizes.total_bytes), style="bold")]


def lines(report: Report, canvas: Canvas) -> RenderableType | None:
    """The source lines whose blocks are largest; the code beside the place, or below it where there is no room."""
    shown = report.lines[:_LINES]
    if not shown:
        return None
    wide = canvas.width >= _WIDE
    places = [canvas.safe(place(row.file, row.line)) for row in shown]
    room = min(widest(places), int(canvas.width * _PLACE)) if wide else canvas.width - 34
    columns = [
        Column(head="size", number=True, width=_SIZE),
        Column(head="share", number=True, width=6),
        Column(head="blocks", number=True, width=6),
        Column(head="line", width=room if wide else None, ratio=None if wide else 1),
    ]
    if wide:
        columns.append(Column(ratio=1))
    rows = []
    for row, spot in zip(shown, places, strict=True):
        spot_text, code = Text(fit_end(spot, room)), Text(canvas.safe(row.code or row.function), style="dim")
        rows.append(
            [
                Text(format_bytes(row.bytes)),
                Text(percent(fraction(row.bytes, report.peak.allocated_bytes)), style="dim"),
                Text(f"{row.blocks:,}", style="dim"),
                *([spot_text, code] if wide else [Text("\n").join([spot_text, code])]),
            ]
        )
    return Group(canvas.title("Where, by line", sentences.LINES), canvas.table(columns, rows))


def blocks(report: Report, canvas: Canvas) -> RenderableType | None:
    """The largest live blocks, each with what made it."""
    shown = report.largest[:_BLOCKS]
    if not shown:
        return None
    places = [canvas.safe(place(block.file, block.line)) for block in shown]
    room = min(widest(places), int(canvas.width * _PLACE))
    columns = (
        Column(head="size", number=True, width=_SIZE),
        Column(head="what", width=widest([label(block.category) for block in shown]) + INDENT),
        Column(head="made by", ratio=1),
        Column(head="at" if room else "", width=room),
    )
    rows = [
        [
            Text(format_bytes(block.bytes)),
            Text.assemble(("■ ", CATEGORY_COLORS.get(block.category, "")), label(canvas.safe(block.category))),
            _maker(block, canvas),
            Text(fit_end(spot, room), style="dim"),
        ]
        for block, spot in zip(shown, places, strict=True)
    ]
    return Group(canvas.title("Largest blocks", sentences.BLOCKS), canvas.table(columns, rows))


def _maker(block: Block, canvas: Canvas) -> Text:
    """The operation that made ``block``, or the phase where there was none, and the module it ran in."""
    maker = Text(canvas.safe(block.op.removeprefix("aten.")) or label(canvas.safe(block.phase)))
    if block.module:
        maker.append(f" in {canvas.safe(block.module)}", style="dim")
    return maker

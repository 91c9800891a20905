"""The table of ``vramdoc gpus``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from vramdoc.hardware import Gpu
from vramdoc.render.terminal.canvas import Canvas, ColorSystem, Column, draw, view_canvas, widest
from vramdoc.units import format_bytes

_FAMILIES = {"datacenter": "Data centre", "workstation": "Workstation", "consumer": "Consumer"}
_WIDE = 100


def render_gpus(
    gpus: Sequence[Gpu], *, width: int = 80, color: ColorSystem | None = None, ascii_only: bool = False
) -> str:
    """``gpus`` by family, in the order of the tables."""
    canvas = view_canvas(width, ascii_only=ascii_only)
    parts: list[RenderableType] = []
    for family, title in _FAMILIES.items():
        members = [gpu for gpu in gpus if gpu.family == family]
        if members:
            parts += [canvas.title(title), _table(members, canvas), Text()]
    parts.append(Text("Sizes as CUDA reports them. Every figure with its source: vramdoc gpus --json", style="dim"))
    return draw(Group(*parts), canvas, color)


def _table(gpus: Sequence[Gpu], canvas: Canvas) -> RenderableType:
    wide = canvas.width >= _WIDE
    columns = [
        Column(head="--gpu", width=widest([gpu.short_name for gpu in gpus])),
        Column(head="name", ratio=1),
        Column(head="memory", number=True, width=10),
        Column(head="compute", number=True, width=7),
    ]
    if wide:
        columns += [Column(head="SMs", number=True, width=4), Column(head="bandwidth", number=True, width=11)]
    return canvas.table(columns, [_row(gpu, wide=wide) for gpu in gpus])


def _row(gpu: Gpu, *, wide: bool) -> list[Text | str]:
    row: list[Text | str] = [
        Text(gpu.short_name, style="bold"),
        Text(gpu.name, style="dim"),
        Text(format_bytes(gpu.total_bytes)),
        Text(".".join(map(str, gpu.compute_capability)), style="dim"),
    ]
    if wide:
        row += [str(gpu.multiprocessors), f"{gpu.memory_bandwidth / 1e9:,.0f} GB/s"]
    return row

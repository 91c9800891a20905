"""The view of ``vramdoc env``."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from vramdoc.render.style import BAD, GOOD
from vramdoc.render.terminal.canvas import Canvas, ColorSystem, Column, draw, view_canvas
from vramdoc.runner.environment import Environment
from vramdoc.units import format_bytes


def render_environment(
    found: Environment, *, width: int = 80, color: ColorSystem | None = None, ascii_only: bool = False
) -> str:
    """The facts as a table, then what to do."""
    canvas = view_canvas(width, ascii_only=ascii_only)
    columns = (Column(width=9), Column(ratio=1))
    rows = [[Text(name, style="dim"), Text(canvas.safe(value))] for name, value in _facts(found)]
    parts: list[RenderableType] = [canvas.title("vramdoc", found.vramdoc), canvas.table(columns, rows), Text()]
    parts.append(_null_gpu(found, canvas))
    if found.advice:
        parts += [Text(), canvas.title("To do"), *[canvas.paragraph(text, mark="-") for text in found.advice]]
    return draw(Group(*parts), canvas, color)


def _null_gpu(found: Environment, canvas: Canvas) -> RenderableType:
    if found.null_gpu.ready:
        text = "The null GPU covers this torch: any GPU can be predicted, without one."
        return canvas.paragraph(text, mark="✓", mark_style=GOOD)
    return canvas.paragraph(f"The null GPU: {found.null_gpu.problem}", mark="✗", mark_style=BAD)


def _facts(found: Environment) -> list[tuple[str, str]]:
    torch = found.torch
    facts = [
        ("Python", found.python),
        ("torch", torch.version if torch is not None else "not installed"),
    ]
    if torch is not None:
        facts += [
            ("CUDA", torch.cuda or "none: this is a CPU build of torch"),
            ("cuDNN", torch.cudnn or "unknown"),
            ("NCCL", torch.nccl or "unknown"),
        ]
    facts.append(("driver", found.driver or "none"))
    for gpu in found.gpus:
        facts.append((f"GPU {gpu.index}", f"{gpu.name}, {format_bytes(gpu.total_bytes)}"))
    if not found.gpus:
        facts.append(("GPU", "none in this machine"))
    return facts

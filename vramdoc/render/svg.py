"""The terminal view as a picture: one SVG file that asks nothing of the network."""

from __future__ import annotations

import re
import zlib
from io import StringIO

from rich.console import CONSOLE_SVG_FORMAT, Console, RenderableType  # type: ignore[attr-defined]  # documented, not re-exported
from rich.terminal_theme import TerminalTheme

from vramdoc.render.style import clean
from vramdoc.render.terminal import layout
from vramdoc.render.terminal.canvas import view_canvas
from vramdoc.report import Report

_FONT_FACE = re.compile(r"@font-face\s*\{\{.*?\}\}\s*", re.DOTALL)
_FONTS = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_ANSI = [
    (40, 44, 52), (210, 72, 59), (63, 155, 79), (191, 143, 29),
    (74, 143, 217), (143, 116, 214), (47, 165, 152), (200, 204, 212),
]  # fmt: skip
_THEME = TerminalTheme((24, 27, 33), (214, 218, 226), _ANSI, _ANSI)


def render(report: Report, *, width: int = 100) -> str:
    """The view in ``width`` columns, light on dark."""
    canvas = view_canvas(width)
    return picture(layout(report, canvas), canvas.width, title=f"vramdoc profile {report.target}")


def picture(view: RenderableType, width: int, *, title: str) -> str:
    """``view`` drawn in a window of ``width`` columns."""
    console = Console(
        width=width,
        file=StringIO(),
        record=True,
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(view)
    # The template is rich's own, less the fonts that it would load from elsewhere.
    template = _FONT_FACE.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", _FONTS)
    drawn = console.export_text(clear=False, styles=True)
    return console.export_svg(
        title=clean(title),
        theme=_THEME,
        code_format=template,
        # Named after the content, so that the same report gives the same file.
        unique_id=f"vramdoc-{zlib.crc32(drawn.encode()):08x}",
    )

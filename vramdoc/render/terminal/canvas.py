"""What the sections of the terminal view are drawn with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from vramdoc.render.style import clean

ColorSystem = Literal["standard", "256", "truecolor"]
"""What a terminal can show, in rich's words."""

EIGHTHS_RIGHT = " ▏▎▍▌▋▊▉█"
EIGHTHS_UP = " ▁▂▃▄▅▆▇█"
INDENT = 2
_NARROWEST = 60
_WIDEST = 132  # beyond it lines grow too long to read
_ASCII = str.maketrans(
    {
        "█": "#", "▓": "=", "▒": "-", "░": ".", "■": "#", "✓": "+", "✗": "x", "▼": "v", "│": "|", "└": "`",
        "─": "-", "╌": "-", "…": "~", "≈": "~", "\N{MULTIPLICATION SIGN}": "x",
        "▏": " ", "▎": " ", "▍": " ", "▌": "#", "▋": "#", "▊": "#", "▉": "#",
        "▁": " ", "▂": " ", "▃": ".", "▄": ".", "▅": ":", "▆": ":", "▇": "#",
    }
)  # fmt: skip


def to_ascii(text: str) -> str:
    """Drawing characters in the nearest ASCII ones; anything else outside ASCII as its escape."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    width: int  # columns
    ascii_only: bool = False

    def narrowed(self, width: int) -> Canvas:
        """The same canvas, ``width`` columns wide."""
        return replace(self, width=width)

    def safe(self, text: str) -> str:
        """``text`` of the report on one line, without control characters."""
        return clean(text, ascii_only=self.ascii_only)

    def title(self, text: str, detail: str = "") -> Text:
        """The heading of a section, ``detail`` beside it in a quieter tone."""
        heading = Text().append(text, style="bold")
        if detail:
            heading.append("  " + self.safe(detail), style="dim")
        heading.truncate(self.width, overflow="ellipsis")
        return heading

    def paragraph(self, text: str, style: str = "", *, mark: str = "", mark_style: str = "") -> RenderableType:
        """``text`` wrapped below itself, indented, ``mark`` before it."""
        table = Table.grid(padding=(0, 1, 0, 0))
        table.add_column(width=1)
        table.add_column(width=self.width - INDENT, overflow="fold")
        table.add_row(Text(mark, style=mark_style), Text(self.safe(text), style=style))
        return table

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Text | str]]) -> Table:
        """A table without lines: a quiet head, rows indented below the section's title."""
        table = Table(
            box=None,
            padding=(0, 2, 0, 0),
            pad_edge=False,
            header_style="dim",
            show_header=any(column.head for column in columns),
            width=self.width,
        )
        table.add_column(width=0, no_wrap=True)
        for column in columns:
            table.add_column(
                Text(column.head),
                justify="right" if column.number else "left",
                width=column.width,
                ratio=column.ratio,
                no_wrap=True,
                overflow="ellipsis",
            )
        for row in rows:
            table.add_row("", *row)
        return table

    def side_by_side(self, left: RenderableType, right: RenderableType, *, gap: int) -> RenderableType:
        """Two blocks of this canvas's width with ``gap`` columns between them."""
        grid = Table.grid(padding=0)
        for width in (self.width, gap, self.width):
            grid.add_column(width=width)
        grid.add_row(left, "", right)
        return grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    head: str = ""
    number: bool = False  # set right
    width: int | None = None  # fixed
    ratio: int | None = None  # share of what the fixed ones leave


def view_canvas(width: int, *, ascii_only: bool = False) -> Canvas:
    """What a view is drawn on in a terminal of ``width`` columns."""
    return Canvas(width=min(max(width, _NARROWEST), _WIDEST), ascii_only=ascii_only)


def draw(view: RenderableType, canvas: Canvas, color: ColorSystem | None) -> str:
    """``view`` as text: with the colours that a terminal of that kind shows, or plain where ``color`` is None."""
    console = Console(
        width=canvas.width,
        force_terminal=color is not None,
        color_system=color,
        no_color=color is None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        console.print(view)
    text = capture.get()
    if color is None:
        text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return to_ascii(text) if canvas.ascii_only else text


def widest(texts: Sequence[str]) -> int:
    """Columns that the longest of ``texts`` takes."""
    return max((cell_len(text) for text in texts), default=0)


def fit_end(text: str, width: int) -> str:
    """``text`` with its beginning cut off where it is too long: the end of a path tells more."""
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) >= width:
        text = text[1:]
    return "…" + text


def bar(fraction: float, width: int) -> str:
    """A bar of ``fraction`` of ``width`` columns, to an eighth of a column; something never as nothing."""
    eighths = max(round(fraction * width * 8), 1 if fraction > 0 else 0)
    full, rest = divmod(min(eighths, width * 8), 8)
    return "█" * full + (EIGHTHS_RIGHT[rest] if rest else "")

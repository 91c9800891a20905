"""Checks for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vramdoc.render.findings import sentences
from vramdoc.render.style import BAD, CAREFUL, GOOD
from vramdoc.render.terminal.canvas import INDENT, Canvas, ColorSystem, draw, view_canvas
from vramdoc.report.findings import Checked, CheckResult, Finding

_COLORS = {"passed": GOOD, "failed": BAD, "fault": CAREFUL}
_HEADING = 8  # columns of "module" and the space after it


def render(result: CheckResult, *, width: int = 80, color: ColorSystem | None = None, ascii_only: bool = False) -> str:
    """One block for each check and a closing line."""
    canvas = view_canvas(width, ascii_only=ascii_only)
    blocks = [_check(check, canvas) for check in result.checks]
    style = f"bold {GOOD if result.passed else BAD}"
    return draw(Group(*blocks, Text(sentences.summary(result), style=style)), canvas, color)


def _check(check: Checked, canvas: Canvas) -> RenderableType:
    state = sentences.state(check)
    rows = []
    if check.fault is not None and check.fault.hint:
        rows.append(("hint", check.fault.hint))
    rows += [("warning", text) for text in check.warnings]
    parts: list[RenderableType] = [
        canvas.paragraph(
            f"{check.name}: {sentences.headline(check)}", "bold", mark=sentences.MARKS[state], mark_style=_COLORS[state]
        ),
        canvas.paragraph(sentences.subject(check), "dim"),
        _rows(rows, canvas),
    ]
    for alike in sentences.together(check.findings):
        # That the budget is broken is what the first line says.
        increases = [finding for finding in alike if finding.rule == "increase"]
        parts += [canvas.paragraph(sentences.broken(finding), _COLORS[state]) for finding in increases]
        parts.append(_details(alike[0], canvas))
    return Group(*parts, Text())


def _details(finding: Finding, canvas: Canvas) -> Table:
    rows = []
    for heading, text in sentences.details(finding):
        rows.append((heading, text))
        if heading == "line" and finding.line is not None and finding.line.code:
            rows.append(("", finding.line.code))
    return _rows(rows, canvas)


def _rows(rows: list[tuple[str, str]], canvas: Canvas) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column(width=_HEADING)
    table.add_column(width=canvas.width - _HEADING - INDENT - 1, overflow="fold")
    for heading, text in rows:
        table.add_row("", Text(heading, style="dim"), Text(canvas.safe(text), style="" if heading else "dim"))
    return table

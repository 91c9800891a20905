"""A comparison as Markdown, for a pull request's comment."""

from __future__ import annotations

from vramdoc.analysis.difference import Difference
from vramdoc.render.difference.sentences import Row, Section, headline, sections, signed, subject
from vramdoc.render.markdown import code, escape
from vramdoc.units import format_bytes

_ROWS = 20


def render(found: Difference) -> str:
    """The document."""
    parts = [f"## {escape(headline(found))}", "  \n".join(escape(line) for line in subject(found))]
    parts += [_section(section) for section in (() if found.is_empty else sections(found))]
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> str:
    lines = ["| change | before | after | |", "| ---: | ---: | ---: | --- |"]
    lines += [_row(row, is_code=section.is_code) for row in section.rows[:_ROWS]]
    rest = len(section.rows) - _ROWS
    more = f"\n\nand {rest} more" if rest > 0 else ""
    return f"### {escape(section.title)}\n\n" + "\n".join(lines) + more


def _row(row: Row, *, is_code: bool) -> str:
    name = code(row.name) if is_code else escape(row.name)
    detail = f" {code(row.detail)}" if row.detail else ""
    change = f"**{signed(row.grown)}**" if row.grown else "-"
    return f"| {change} | {format_bytes(row.before)} | {format_bytes(row.after)} | {name}{detail} |"

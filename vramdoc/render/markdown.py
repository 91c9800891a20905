"""A report as Markdown, for a pull request or a note: headings and tables, all text of the report escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from vramdoc.analysis.modules import module_lines
from vramdoc.analysis.next_steps import next_steps
from vramdoc.analysis.shares import fraction, peak_shares
from vramdoc.analysis.verdict import judge
from vramdoc.render import sentences
from vramdoc.render.style import MODULE_PARTS, OUTCOME_MARKS, clean, label, percent, place
from vramdoc.report import Report
from vramdoc.units import format_bytes

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$])")
_MODULES, _LINES, _BLOCKS = 20, 10, 10


def render(report: Report) -> str:
    """The document."""
    parts = [
        f"## {OUTCOME_MARKS[judge(report).outcome]} {escape(sentences.headline(report))}",
        escape(f"{sentences.subject(report)}; {sentences.basis(report)}"),
        escape(sentences.need(report)),
        *(escape(line) for line in sentences.limit(report)),
        *_section(f"What fills the peak: {sentences.peak_moment(report)}", _categories(report)),
        *_section("When", _phases(report)),
        *_section("Where, by module", _modules(report)),
        *_section("Where, by line", _lines(report)),
        *_section("Largest blocks", _blocks(report)),
        "### How sure",
        escape(sentences.growth(report)),
        escape(sentences.exactness(report)),
        _assumptions(report),
        escape(sentences.value_range(report)),
        "\n".join(f"- {escape(text)}" for text in sentences.cautions(report)),
        "### Next",
        "\n".join(f"- {escape(step.reason)}: {code(step.command)}" for step in next_steps(report)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    """``text`` on one line, with no character that Markdown or HTML would read as its own."""
    return _SPECIAL.sub(r"\\\1", clean(text)).replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")


def code(text: str) -> str:
    """``text`` as inline code, fenced by more backticks than it holds in a row; a pipe would end a table's cell."""
    plain = clean(text).replace("|", "\N{FULLWIDTH VERTICAL LINE}")
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", plain)), default=0))
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{pad}{plain}{pad}{fence}" if plain else ""


def _section(title: str, table: str) -> tuple[str, ...]:
    return (f"### {escape(title)}", table) if table else ()


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already; ``>`` before a head sets its column right. "" without rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    rule = " | ".join("---:" if head.startswith(">") else "---" for head in heads)
    names = " | ".join(head.removeprefix(">") for head in heads)
    return "\n".join([f"| {names} |", f"| {rule} |", *lines])


def _categories(report: Report) -> str:
    whole = report.peak.allocated_bytes
    rows = [(label(name), format_bytes(size), percent(fraction(size, whole))) for name, size in peak_shares(report)]
    return table(("what", ">size", ">share"), rows)


def _phases(report: Report) -> str:
    rows = [
        (
            f"**{label(phase.name)}**" if phase.name == report.peak.phase else escape(label(phase.name)),
            format_bytes(phase.peak_bytes),
            format_bytes(phase.end_bytes),
        )
        for phase in report.phases
    ]
    return table(("phase", ">peak", ">at its end"), rows)


def _modules(report: Report) -> str:
    shown = module_lines(report.modules, limit=_MODULES)
    parts = [(head, name) for head, name in MODULE_PARTS if any(getattr(row.sizes, name) for row in shown)]
    rows = []
    for row in shown:
        times = f" ({row.count}\N{MULTIPLICATION SIGN})" if row.count > 1 else ""
        name = "&nbsp;&nbsp;" * row.depth + code(row.label or "model") + times
        sizes = [getattr(row.sizes, field) for _, field in parts]
        figures = [format_bytes(size) if size else "-" for size in (*sizes, row.sizes.total_bytes)]
        rows.append((name, code(row.class_name), *figures))
    return table(("module", "class", *(f">{head}" for head, _ in parts), ">total"), rows)


def _lines(report: Report) -> str:
    rows = [
        (format_bytes(row.bytes), f"{row.blocks:,}", code(place(row.file, row.line)), code(row.code or row.function))
        for row in report.lines[:_LINES]
    ]
    return table((">size", ">blocks", "line", "code"), rows)


def _blocks(report: Report) -> str:
    rows = [
        (
            format_bytes(block.bytes),
            escape(label(block.category)),
            code(block.op or label(block.phase)),
            code(block.module),
            code(place(block.file, block.line)),
        )
        for block in report.largest[:_BLOCKS]
    ]
    return table((">size", "what", "made by", "module", "at"), rows)


def _assumptions(report: Report) -> str:
    rows = [
        (code(row.rule), code(row.op), f"{row.reads:,}", code(place(row.file, row.line)))
        for row in report.values.assumptions
    ]
    return table(("rule", "operation", ">reads", "at"), rows)

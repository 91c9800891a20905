"""The tables of the page."""

from __future__ import annotations

from collections.abc import Sequence

from vramdoc.analysis.modules import ModuleLine, module_lines
from vramdoc.analysis.shares import fraction, peak_shares
from vramdoc.render.html.build import Child, Element, element
from vramdoc.render.style import CATEGORY_COLORS, MODULE_PARTS, label, percent, place
from vramdoc.report import Block, Report
from vramdoc.units import format_bytes

_MODULES, _LINES, _BLOCKS = 60, 30, 30
_INDENT = 18  # pixels a level


def categories(report: Report) -> Element:
    """What fills the peak, with bars."""
    rows = peak_shares(report)
    largest = max((size for _, size in rows), default=1)
    body = []
    for name, size in rows:
        color = f"background:{CATEGORY_COLORS[name]}"
        bar = element("i", style=f"{color};width:{100 * fraction(size, largest):.2f}%")
        share = percent(fraction(size, report.peak.allocated_bytes))
        cells = [
            cell(element("span", class_="swatch", style=color), label(name), kind="name"),
            cell(format_bytes(size), kind="number"),
            cell(share, kind="number quiet"),
            cell(bar, kind="bar"),
        ]
        body.append(element("tr", *cells))
    return table(("", "number:size", "number:share", ""), body)


def phases(report: Report) -> Element:
    """Peak and end of every phase."""
    body = [
        element(
            "tr",
            cell(label(phase.name)),
            cell(format_bytes(phase.peak_bytes), kind="number"),
            cell(format_bytes(phase.end_bytes), kind="number"),
            class_="peak" if phase.name == report.peak.phase else "",
        )
        for phase in report.phases
    ]
    return element("div", table(("phase", "number:peak", "number:at its end"), body), class_="phases")


def modules(report: Report) -> Element:
    """The module tree; columns that are zero throughout are left out."""
    shown = module_lines(report.modules, limit=_MODULES)
    parts = [(head, name) for head, name in MODULE_PARTS if any(getattr(row.sizes, name) for row in shown)]
    heads = ("module", "class", *(f"number:{head}" for head, _ in parts), "number:total")
    return table(heads, [_module_row(row, [name for _, name in parts]) for row in shown])


def _module_row(row: ModuleLine, parts: Sequence[str]) -> Element:
    times = f" ({row.count}\N{MULTIPLICATION SIGN})" if row.count > 1 else ""
    name = element("td", (row.label or "model") + times, style=f"padding-left:{row.depth * _INDENT}px")
    sizes = [getattr(row.sizes, part) for part in parts]
    return element(
        "tr",
        name,
        cell(row.class_name, kind="quiet"),
        *[cell(format_bytes(size) if size else "-", kind="number") for size in sizes],
        cell(format_bytes(row.sizes.total_bytes), kind="number"),
    )


def lines(report: Report) -> Element:
    """The source lines whose blocks are largest, with their code."""
    body = [
        element(
            "tr",
            cell(format_bytes(row.bytes), kind="number"),
            cell(percent(fraction(row.bytes, report.peak.allocated_bytes)), kind="number quiet"),
            cell(f"{row.blocks:,}", kind="number quiet"),
            cell(place(row.file, row.line), element("br"), element("code", row.code or row.function)),
        )
        for row in report.lines[:_LINES]
    ]
    return table(("number:size", "number:share", "number:blocks", "line"), body)


def blocks(report: Report) -> Element:
    """The largest live blocks."""
    body = [
        element(
            "tr",
            cell(format_bytes(block.bytes), kind="number"),
            cell(_swatch(block), label(block.category), kind="name"),
            cell(block.op or label(block.phase)),
            cell(block.module, kind="quiet"),
            cell(place(block.file, block.line), kind="quiet"),
        )
        for block in report.largest[:_BLOCKS]
    ]
    return table(("number:size", "what", "made by", "module", "at"), body)


def assumptions(report: Report) -> Element:
    """Every assumed value."""
    body = [
        element(
            "tr",
            cell(row.rule),
            cell(row.op, kind="quiet"),
            cell(f"{row.reads:,}", kind="number"),
            cell(place(row.file, row.line)),
        )
        for row in report.values.assumptions
    ]
    return table(("rule", "operation", "number:reads", "at"), body)


def _swatch(block: Block) -> Element:
    return element("span", class_="swatch", style=f"background:{CATEGORY_COLORS.get(block.category, 'none')}")


def cell(*children: Child, kind: str = "") -> Element:
    return element("td", *children, class_=kind)


def table(heads: Sequence[str], rows: Sequence[Element]) -> Element:
    """A table that scrolls by itself where the page is narrow; ``number:`` before a head sets it right."""
    cells = [
        element("th", head.removeprefix("number:"), class_="number" if head.startswith("number:") else "")
        for head in heads
    ]
    table = element("table", element("thead", element("tr", *cells)), element("tbody", *rows))
    return element("div", table, class_="scroll")

"""A report as one HTML page: no script, nothing fetched, light and dark, every text of the report escaped."""

from __future__ import annotations

from collections.abc import Sequence

from vramdoc.analysis.next_steps import next_steps
from vramdoc.analysis.verdict import judge
from vramdoc.render import sentences
from vramdoc.render.html.build import Child, Element, element, section, to_html
from vramdoc.render.html.chart import timeline
from vramdoc.render.html.css import STYLE
from vramdoc.render.html.tables import assumptions, blocks, categories, lines, modules, phases
from vramdoc.render.style import CATEGORY_COLORS, OUTCOME_MARKS
from vramdoc.report import Report
from vramdoc.units import format_bytes


def render(report: Report) -> str:
    """The page."""
    return page(f"vramdoc: {report.target}", _sections(report))


def page(title: str, sections: Sequence[Child]) -> str:
    """A whole page of ``sections``."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", STYLE),
    )
    body = element("body", element("main", *sections))
    return "<!doctype html>\n" + to_html(element("html", head, body, lang="en")) + "\n"


def _sections(report: Report) -> list[Child]:
    chart = timeline(report)
    return [
        verdict(report),
        section("What fills the peak", sentences.peak_moment(report), categories(report)),
        section("When", sentences.TIMELINE, *([chart] if chart is not None else []), phases(report)),
        section("Where, by module", sentences.MODULES, modules(report)),
        section("Where, by line", sentences.LINES, lines(report)),
        section("Largest blocks", sentences.BLOCKS, blocks(report)),
        _notes(report),
        _next(report),
        element("footer", f"vramdoc {report.vramdoc_version}, {report.created}. ", _versions(report)),
    ]


def verdict(report: Report) -> Element:
    """Does it fit: the headline and the GPU's memory as a bar."""
    outcome = judge(report).outcome
    return element(
        "header",
        element("p", sentences.subject(report), class_="quiet"),
        element("h1", f"{OUTCOME_MARKS[outcome]} {sentences.headline(report)}", class_=outcome),
        element("p", sentences.basis(report), class_="quiet"),
        _memory_bar(report),
        element("p", sentences.need(report)),
        *[element("p", line) for line in sentences.limit(report)],
    )


def _memory_bar(report: Report) -> Element:
    """The GPU's memory to scale; a mark where it ends if the step goes beyond."""
    judged = judge(report)
    total = report.device.total_bytes
    whole = max(judged.need_bytes, total, 1)
    parts = (
        ("allocated", judged.allocated_bytes, CATEGORY_COLORS["parameters"]),
        ("cached", judged.cached_bytes, CATEGORY_COLORS["buffers"]),
        ("context", judged.context_bytes, CATEGORY_COLORS["workspace"]),
    )
    bars: list[Child] = [
        element(
            "span",
            title=f"{name}: {format_bytes(size)}",
            style=f"width:{100 * size / whole:.3f}%;background:{color}",
        )
        for name, size, color in parts
    ]
    if judged.short_bytes:
        edge = f"left:{100 * total / whole:.3f}%"
        bars.append(element("i", title=f"beyond the GPU: {format_bytes(judged.short_bytes)}", style=edge))
    return element("div", *bars, class_="memory", role="img", aria_label=sentences.need(report))


def _notes(report: Report) -> Element:
    growing = "bad" if report.growth_bytes_per_step > 0 else ""
    parts: list[Child] = [
        element("p", sentences.growth(report), class_=growing),
        element("p", sentences.exactness(report)),
    ]
    if report.values.assumptions:
        parts.append(assumptions(report))
    if between := sentences.value_range(report):
        parts.append(element("p", between))
    if found := sentences.cautions(report):
        parts.append(element("ul", *[element("li", text) for text in found], class_="cautions"))
    return section("How sure", "", *parts)


def _next(report: Report) -> Element:
    steps = [
        element("li", element("span", step.reason, class_="quiet"), element("pre", step.command))
        for step in next_steps(report)
    ]
    return section("Next", "", element("ul", *steps, class_="plain"))


def _versions(report: Report) -> str:
    return ", ".join(f"{name} {version}" for name, version in report.versions.items())

"""Advice as one HTML page: no script, nothing fetched, light and dark, every text of the report escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vramdoc.render import sentences as profile
from vramdoc.render.advice import sentences
from vramdoc.render.html import page, verdict
from vramdoc.render.html.build import Child, Element, element, section
from vramdoc.render.html.tables import categories, cell, table
from vramdoc.report.advice import AdviceReport, Effect, Plan
from vramdoc.units import format_bytes


def render(report: AdviceReport) -> str:
    """The page."""
    return page(f"vramdoc advise: {report.target}", list(_sections(report)))


def _sections(report: AdviceReport) -> Iterator[Child]:
    yield verdict(report.base)
    if told := sentences.budget(report):
        yield element("p", told)
    yield section("What fills the peak", profile.peak_moment(report.base), categories(report.base))
    answers = (sentences.activations_or_parameters(report), sentences.largest_batch(report))
    yield section("Is it activations or parameters?", "", *[element("p", text) for text in answers if text])
    if allowed := sentences.saving(report.effects, allowed=True):
        yield section("Each measure alone", sentences.before(report), _effects(allowed))
    if others := sentences.saving(report.effects, allowed=False):
        yield section("Only with your leave", sentences.leave(report), _effects(others))
    if nothing := sentences.useless(report.effects):
        rows = [
            element("tr", cell(element("code", effect.choice.name), kind="name"), cell(effect.reason))
            for effect in nothing
        ]
        yield section("Saves nothing here", "", table(("measure", "because"), rows))
    if report.plans:
        yield section("Plans", sentences.room(report), *_plans(report))
    for text in sentences.shortage(report):
        yield element("p", text)
    if report.ways:
        notes = [element("li", text) for text in sentences.way_notes(report)]
        yield section(f"On up to {report.gpus} GPUs", "", _ways(report), element("ul", *notes))
    if report.proofs:
        rows = [
            element("tr", cell(element("code", each.name), kind="name"), cell(sentences.proof(each)))
            for each in report.proofs
        ]
        yield section("Same gradients?", "on the host", table(("measure", "largest difference"), rows))
    yield section("How sure", "", *_notes(report))
    yield _next(report)
    yield element("footer", f"vramdoc {report.vramdoc_version}, {report.created}.")


def _effects(shown: Sequence[Effect]) -> Element:
    rows = [
        element(
            "tr",
            cell(element("b", format_bytes(effect.saved_bytes)), kind="number"),
            cell(format_bytes(effect.reserved_bytes or 0), kind="number"),
            cell(format_bytes(effect.allocated_bytes or 0), kind="number"),
            cell(sentences.interval(effect.time), kind="number"),
            cell(effect.tier, kind="name"),
            cell(effect.title, " ", element("code", effect.choice.name)),
        )
        for effect in shown
    ]
    return table(("number:saves", "number:reserved", "number:allocated", "number:time", "tier", "measure"), rows)


def _plans(report: AdviceReport) -> Iterator[Child]:
    for number, plan in enumerate(report.plans, 1):
        yield element("h3", sentences.plan_title(number, plan), class_="fits" if plan.fits else "bad")
        yield element("p", sentences.plan_figures(plan))
        if not plan.steps:
            yield element("p", "no change: as it is", class_="quiet")
            continue
        yield _steps(report, plan)
        if plan.notes:
            yield element("ul", *[element("li", note) for note in plan.notes], class_="cautions")
        yield lines_of(plan.code)


def _steps(report: AdviceReport, plan: Plan) -> Element:
    rows = []
    peak = report.base.peak.reserved_bytes
    for step in plan.steps:
        after = step.reserved_bytes if step.reserved_bytes is not None else peak
        change = f"{format_bytes(peak)} → {format_bytes(after)}"
        cells = [cell(step.title), cell(change, kind="number"), cell(sentences.ratio(step.time), kind="number")]
        rows.append(element("tr", *cells))
        peak = after
    return table(("step", "number:reserved peak", "number:time"), rows)


def _ways(report: AdviceReport) -> Element:
    rows = [
        element(
            "tr",
            cell(str(way.gpus), kind="number"),
            cell(way.title),
            cell(sentences.way_peak(way), kind="number" if way.fits else "number bad"),
            cell(format_bytes(way.communication_bytes), kind="number"),
            cell(sentences.seconds(way.exposed_seconds), kind="number"),
            cell(f"{way.speed:.2f}" if way.speed is not None else "", kind="number"),
            cell(way.link),
        )
        for way in report.ways
        if way.ranks
    ]
    heads = ("number:GPUs", "strategy", "number:peak of a rank", "number:sends", "number:waits", "number:speed", "link")
    return table(heads, rows)


def _notes(report: AdviceReport) -> Iterator[Child]:
    for text in (*sentences.real_times(report), sentences.work(report)):
        yield element("p", text)
    if found := dict.fromkeys((*report.notes, *report.base.warnings)):
        yield element("ul", *[element("li", text) for text in found], class_="cautions")


def _next(report: AdviceReport) -> Element:
    steps = [
        element("li", element("span", reason, class_="quiet"), element("pre", command))
        for command, reason in sentences.next_steps(report)
    ]
    return section("Next", "", element("ul", *steps, class_="plain"))


def lines_of(code: str) -> Element:
    """Code as it is to be copied; ``element`` would escape the ends of its lines."""
    block = element("pre")
    last: Element | None = None
    for line in code.strip().splitlines():
        text = element("span", line)
        text.tail = "\n"
        block.append(text)
        last = text
    if last is not None:
        last.tail = ""
    return block

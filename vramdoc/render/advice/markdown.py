"""Advice as Markdown, all text of the report escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vramdoc.analysis.shares import fraction, peak_shares
from vramdoc.analysis.verdict import judge
from vramdoc.render import sentences as profile
from vramdoc.render.advice import sentences
from vramdoc.render.markdown import code, escape, table
from vramdoc.render.style import OUTCOME_MARKS, label, percent
from vramdoc.report.advice import AdviceReport, Effect, Plan
from vramdoc.units import format_bytes


def render(report: AdviceReport) -> str:
    """The document."""
    base = report.base
    parts = [
        f"## {OUTCOME_MARKS[judge(base).outcome]} {escape(profile.headline(base))}",
        escape(f"{profile.subject(base)}; {profile.basis(base)}"),
        escape(profile.need(base)),
        escape(sentences.budget(report)),
        f"### What fills the peak: {escape(profile.peak_moment(base))}",
        _categories(report),
        "### Is it activations or parameters?",
        escape(sentences.activations_or_parameters(report)),
        escape(sentences.largest_batch(report)),
        *_effects("Each measure alone", sentences.before(report), sentences.saving(report.effects, allowed=True)),
        *_effects(
            "Only with your leave",
            sentences.leave(report),
            sentences.saving(report.effects, allowed=False),
        ),
        *_useless(report),
        *_plans(report),
        *(escape(text) for text in sentences.shortage(report)),
        *_ways(report),
        *_proofs(report),
        "\n".join(f"- {escape(text)}" for text in dict.fromkeys((*report.notes, *base.warnings))),
        *(escape(text) for text in sentences.real_times(report)),
        escape(sentences.work(report)),
        "### Next",
        "\n".join(f"- {escape(reason)}: {code(command)}" for command, reason in sentences.next_steps(report)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _categories(report: AdviceReport) -> str:
    whole = report.base.peak.allocated_bytes
    rows = [
        (label(name), format_bytes(size), percent(fraction(size, whole))) for name, size in peak_shares(report.base)
    ]
    return table(("what", ">size", ">share"), rows)


def _effects(title: str, detail: str, shown: Sequence[Effect]) -> Iterator[str]:
    if not shown:
        return
    rows = [
        (
            format_bytes(effect.saved_bytes),
            format_bytes(effect.reserved_bytes or 0),
            format_bytes(effect.allocated_bytes or 0),
            escape(sentences.interval(effect.time)),
            effect.tier,
            f"{escape(effect.title)} ({code(effect.choice.name)})",
        )
        for effect in shown
    ]
    yield f"### {title}"
    yield escape(detail)
    yield table((">saves", ">reserved", ">allocated", ">time", "tier", "measure"), rows)


def _useless(report: AdviceReport) -> Iterator[str]:
    shown = sentences.useless(report.effects)
    if shown:
        yield "### Saves nothing here"
        yield "\n".join(f"- {code(effect.choice.name)}: {escape(effect.reason)}" for effect in shown)


def _plans(report: AdviceReport) -> Iterator[str]:
    if not report.plans:
        return
    yield "### Plans"
    yield escape(sentences.room(report))
    for number, plan in enumerate(report.plans, 1):
        yield f"#### {escape(sentences.plan_title(number, plan))}"
        yield escape(sentences.plan_figures(plan))
        yield _steps(report, plan)
        yield "\n".join(f"- {escape(note)}" for note in plan.notes)
        if plan.steps:
            yield fenced(plan.code)


def _steps(report: AdviceReport, plan: Plan) -> str:
    rows = []
    peak = report.base.peak.reserved_bytes
    for step in plan.steps:
        after = step.reserved_bytes if step.reserved_bytes is not None else peak
        change = f"{format_bytes(peak)} → {format_bytes(after)}"
        rows.append((escape(step.title), change, escape(sentences.ratio(step.time))))
        peak = after
    return table(("step", ">reserved peak", ">time"), rows)


def _ways(report: AdviceReport) -> Iterator[str]:
    if not report.ways:
        return
    yield f"### On up to {report.gpus} GPUs"
    rows = [
        (
            str(way.gpus),
            escape(way.title),
            sentences.way_peak(way) + ("" if way.fits else " ✗"),
            format_bytes(way.communication_bytes),
            sentences.seconds(way.exposed_seconds),
            f"{way.speed:.2f}" if way.speed is not None else "",
            way.link,
        )
        for way in report.ways
        if way.ranks
    ]
    yield table((">GPUs", "strategy", ">peak of a rank", ">sends", ">waits", ">speed", "link"), rows)
    yield "\n".join(f"- {escape(text)}" for text in sentences.way_notes(report))


def _proofs(report: AdviceReport) -> Iterator[str]:
    if report.proofs:
        yield "### Same gradients?"
        rows = [(code(proof.name), escape(sentences.proof(proof))) for proof in report.proofs]
        yield table(("measure", "largest difference"), rows)


def fenced(text: str) -> str:
    """``text`` as a block of Python; a fence that it holds cannot end it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}python\n{text.strip()}\n{fence}"

"""The sentences of advice, the same in every format. Plain text: each renderer escapes it for itself."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from vramdoc.render.style import label, percent
from vramdoc.report.advice import AdviceReport, Effect, LargestBatch, Plan, Proof, Ratio, Way
from vramdoc.units import format_bytes

TIMES = "\N{MULTIPLICATION SIGN}"


def budget(report: AdviceReport) -> str:
    """Whether the user's own budget holds; "" where they gave none."""
    limit = report.room.budget_bytes
    if limit is None:
        return ""
    over = report.base.peak.reserved_bytes - report.room.allowed_bytes
    state = f"{format_bytes(over)} over" if over > 0 else f"{format_bytes(-over)} below"
    return f"Budget: {format_bytes(limit)} reserved. The target as it is lies {state} it."


def activations_or_parameters(report: AdviceReport) -> str:
    """The answer to "is it activations or parameters?"."""
    grows, stays = report.activation_bytes, report.state_bytes
    whole = max(report.base.peak.allocated_bytes, 1)
    if grows >= 2 * stays:
        answer = "Activations."
    elif stays >= 2 * grows:
        answer = "Parameters and what training keeps for them."
    else:
        answer = "Both."
    return (
        f"{answer} {format_bytes(grows)} of the peak ({percent(grows / whole)}) grow with the batch; parameters, "
        f"gradients and the optimizer's state are {format_bytes(stays)} ({percent(stays / whole)})."
    )


def largest_batch(report: AdviceReport) -> str:
    """How far the batch could grow as it is; "" where that was not measured."""
    found = report.largest_batch
    if found is None:
        return ""
    if not found.size:
        return "Largest batch today: none. Not even one sample fits."
    return f"Largest batch today: {batch(found)}, with {format_bytes(found.reserved_bytes)} reserved."


def batch(found: LargestBatch | None) -> str:
    """A largest batch as a number."""
    if found is None:
        return ""
    return f"{found.size:,} or more" if found.at_least else f"{found.size:,}"


def room(report: AdviceReport) -> str:
    """What a plan has to fit into."""
    limit = report.room
    allowed = format_bytes(limit.allowed_bytes)
    margin = f" less {percent(limit.margin)}" if limit.margin else ""
    if limit.budget_bytes is not None:
        return f"to fit, at most {allowed} reserved: the budget{margin}"
    about = "≈" if limit.context_estimated else ""
    context = f"{about}{format_bytes(limit.context_bytes)} context"
    return f"to fit, at most {allowed} reserved: {format_bytes(limit.total_bytes)} less {context}{margin}"


def ratio(time: Ratio | None) -> str:
    """A ratio alone: ``1.12x``."""
    return "" if time is None else f"{_figure(time.value)}{TIMES}"


def interval(time: Ratio | None) -> str:
    """A ratio with its range: ``1.12x (1.06 to 1.18)``; without one where the time does not change."""
    if time is None:
        return ""
    if time.high - time.low < 0.005:
        return ratio(time)
    return f"{ratio(time)} ({_figure(time.low)} to {_figure(time.high)})"


def plan_figures(plan: Plan) -> str:
    """Peak, time and largest batch of a plan, on one line."""
    parts = [f"{format_bytes(plan.reserved_bytes)} reserved ({format_bytes(plan.allocated_bytes)} allocated)"]
    if plan.time is not None:
        parts.append(f"{interval(plan.time)} the time for a sample")
    if plan.largest_batch is not None:
        each = " on each GPU" if plan.gpus > 1 else ""
        parts.append(f"batch up to {batch(plan.largest_batch)}{each}")
    return ", ".join(parts)


def plan_title(number: int, plan: Plan) -> str:
    """``1  fastest that fits``, with the number of GPUs where there are several."""
    gpus = f", {plan.gpus} GPUs" if plan.gpus > 1 else ""
    return f"{number}  {plan.label}{gpus}"


def before(report: AdviceReport) -> str:
    """What single measures are compared with."""
    peak = report.base.peak
    return f"as it is: {format_bytes(peak.allocated_bytes)} allocated, {format_bytes(peak.reserved_bytes)} reserved"


def shortage(report: AdviceReport) -> Iterator[str]:
    """What to say where nothing fits."""
    short = report.shortage
    if short is None:
        return
    yield (
        f"No plan fits. The smallest still needs {format_bytes(short.reserved_bytes)} reserved, "
        f"{format_bytes(short.short_bytes)} too much."
    )
    if short.filled_by:
        fills = ", ".join(f"{label(name)} {format_bytes(size)}" for name, size in list(short.filled_by.items())[:4])
        yield f"What still fills it: {fills}."
    if short.gpus is not None:
        yield f"It fits {short.gpus} of these GPUs (measured: run {short.gpus_run})."
    if short.gpu:
        yield f"The smallest listed GPU with room for the reserved bytes that were measured: {short.gpu_name}."
    if short.gpus is None and not short.gpu:
        yield "No listed GPU has room for it."


def saving(effects: Sequence[Effect], *, allowed: bool) -> list[Effect]:
    """The measures that save something, those that the user's leave covers or the others."""
    return [effect for effect in effects if effect.allowed is allowed and not effect.reason]


def useless(effects: Sequence[Effect]) -> list[Effect]:
    """The measures that save nothing, those that were run first."""
    found = [effect for effect in effects if effect.reason]
    return sorted(found, key=lambda effect: effect.reserved_bytes is None)


def leave(report: AdviceReport) -> str:
    """The flag that would let plans take the measures that now need leave."""
    tiers = dict.fromkeys([*report.allow, *(effect.tier for effect in saving(report.effects, allowed=False))])
    # A measure by name is covered where its whole tier is.
    whole = [name for name in tiers if not any(e.choice.name == name and e.tier in tiers for e in report.effects)]
    return f"--allow {','.join(whole)}"


def way_peak(way: Way) -> str:
    """The peak, of the largest rank."""
    return format_bytes(max(rank.reserved_bytes for rank in way.ranks)) if way.ranks else ""


def ranks(way: Way) -> str:
    """The peaks of ranks where they differ, "" where they are alike."""
    if len(way.ranks) < 2:
        return ""
    each = ", ".join(f"rank {rank.rank} {format_bytes(rank.reserved_bytes)}" for rank in way.ranks)
    return f"{way.gpus} GPUs, {way.title}: {each}."


def way_notes(report: AdviceReport) -> Iterator[str]:
    """What is to be said of strategies: peaks that differ, waiting that outweighs the gain, why one cannot be used."""
    for way in report.ways:
        if told := ranks(way):
            yield told
        if way.warning:
            yield f"{way.gpus} GPUs, {way.title}: {way.warning}."
    for title, reason in dict.fromkeys((way.title, way.reason) for way in report.ways if way.reason):
        yield f"{title}: {reason}."


def proof(found: Proof) -> str:
    """Whether gradients stay the same, in words."""
    if found.largest_difference is None:
        return f"not shown: {found.error}"
    difference = f"{found.largest_difference:.1e}" if found.largest_difference else "0"
    return f"{difference}, of values up to {found.largest_value:.1e} ({found.copy})"


def work(report: AdviceReport) -> str:
    """How much was measured, and how long it took."""
    kept = f", {report.cached:,} of them kept from before," if report.cached else ""
    cut = "Interrupted: the best so far. " if report.interrupted else ""
    return (
        f"{cut}Every saving is the difference between two measured runs: {report.measured:,} runs{kept} in "
        f"{report.seconds:.0f} s. Times are modelled, as ratios; four of five known cases lie in the range."
    )


def seconds(value: float | None) -> str:
    """A time in ms."""
    return "" if value is None else f"{value * 1000:,.1f} ms"


def real_times(report: AdviceReport) -> Iterator[str]:
    """What steps took on this machine's own GPU, where that was measured."""
    runs = {run.id: run for run in report.runs}
    base = runs[report.base_run].real_seconds
    if base is None:
        return
    yield f"Measured here: {seconds(base)} a step as it is."
    for number, plan in enumerate(report.plans, 1):
        took = runs[plan.run].real_seconds
        if took is not None:
            yield f"Plan {number}: {seconds(took)} a step, {_figure(took / base)}{TIMES}."


def next_steps(report: AdviceReport) -> list[tuple[str, str]]:
    """Commands that follow, each with what it is for."""
    plain = f"vramdoc advise {shlex.quote(report.target)} {report.flags}".rstrip()
    base = f"{plain} {report.allow_flag}".rstrip()
    steps = []
    if report.plans and len(report.plans) > 1:
        steps.append((f"{base} --show {len(report.plans)}", "the code of another plan, by its number"))
    names = [effect.choice.name for effect in saving(report.effects, allowed=True)]
    if names:
        steps.append((f"{base} --show {names[0]}", "the code of one measure, and what could go wrong"))
    if saving(report.effects, allowed=False):
        steps.append((f"{plain} {leave(report)}", "plans that may change the training too"))
    return [*steps, (f"{base} -o advice.html", "the whole advice as a page")]


def _figure(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"

"""The sentences of a report, the same in every format. Plain text: each renderer escapes it for itself."""

from __future__ import annotations

from vramdoc.analysis.shares import steps_until_full
from vramdoc.analysis.verdict import Verdict, judge
from vramdoc.render.style import label
from vramdoc.report import Report
from vramdoc.units import format_bytes

_AT_LEAST_ONE_STEP = 1


def headline(report: Report) -> str:
    """The answer: fits or not, on what, and by how much."""
    verdict = judge(report)
    name = f"{report.device.name}" + (f" (one of {report.device.count})" if report.device.count > 1 else "")
    if verdict.outcome == "fits":
        return f"Fits {name} with {format_bytes(verdict.free_bytes)} to spare"
    if verdict.outcome == "squeezes":
        times = "once" if verdict.retries == 1 else f"{verdict.retries} times"
        return f"Squeezes into {name}: torch had to empty its cache {times}"
    if not verdict.short_bytes:
        return f"Does not fit {name}"
    at_least = "at least " if report.device.kind == "real" else ""
    return f"Does not fit {name}: {at_least}{format_bytes(verdict.short_bytes)} short"


def subject(report: Report) -> str:
    """What was run."""
    steps = f"{report.steps} step" + ("s" if report.steps != _AT_LEAST_ONE_STEP else "")
    return f"{report.target}, batch {report.batch_size}, {steps}"


def basis(report: Report) -> str:
    """What the figures come from."""
    how = "measured on this GPU" if report.device.kind == "real" else "predicted on a null GPU"
    parts = [how]
    parts += [f"{name} {report.versions[key]}" for key, name in _VERSIONS if report.versions.get(key)]
    if report.step_seconds is not None:
        parts.append(f"{report.step_seconds * 1000:,.1f} ms a step")
    return ", ".join(parts)


_VERSIONS = (("torch", "torch"), ("cuda", "CUDA"), ("driver", "driver"))


def need(report: Report) -> str:
    """What the GPU must have, and its parts."""
    verdict = judge(report)
    parts = f"{format_bytes(verdict.allocated_bytes)} allocated + {format_bytes(verdict.cached_bytes)} cached"
    if report.peak.context_bytes is None:
        return f"{format_bytes(verdict.need_bytes)} reserved = {parts}; the CUDA context comes on top, size unknown"
    return (
        f"{format_bytes(verdict.need_bytes)} needed = {parts} + {format_bytes(verdict.context_bytes)} context"
    )


def limit(report: Report) -> tuple[str, ...]:
    """What happened under the GPU's limit, where the step wants more than the GPU has; () where it does not."""
    limited = report.limited
    if limited is None:
        return ()
    tries = "1 retry" if limited.alloc_retries == 1 else f"{limited.alloc_retries} retries"
    if limited.completed:
        return (
            f"Held to the GPU's memory the step completes after {tries}, with {format_bytes(limited.reserved_bytes)} "
            "reserved. Each retry waits for the GPU and frees cached memory: slow, and near the edge.",
        )
    where = f" in {label(limited.phase)}" if limited.phase else ""
    lines = [f"Held to the GPU's memory it runs out{where}, after {tries}. torch says:"]
    return (
        (*lines, limited.out_of_memory) if limited.out_of_memory else (lines[0].replace(" torch says:", ""),)
    )


def peak_moment(report: Report) -> str:
    """When the peak is."""
    moment = f"{label(report.peak.phase)} of step {report.peak.step + 1} of {report.steps}"
    return f"{format_bytes(report.peak.allocated_bytes)}, in {moment}"


def growth(report: Report) -> str:
    """How memory moves from step to step."""
    size = report.growth_bytes_per_step
    if size == 0:
        return "No growth: every step ends with what the one before it ended with."
    if size < 0:
        return f"Shrinks by {format_bytes(-size)} from step to step: it has not settled; measure more steps."
    left = steps_until_full(report)
    until = f" The GPU is full after {left:,} more." if report.fits and left is not None else ""
    return (
        f"Grows by {format_bytes(size)} every step: something outlives its step, such as a kept loss.{until}"
    )


def exactness(report: Report) -> str:
    """What the figures rest on."""
    if report.values.exact:
        if report.device.kind == "real":
            return "Exact: every value was computed."
        return "Exact: no unknown value steered the step."
    count = len(report.values.assumptions)
    return (
        f"Rests on {count} assumption{'s' if count != 1 else ''} about values that only a real GPU computes:"
    )


def value_range(report: Report) -> str:
    """What the assumptions can change, "" where that was not measured."""
    low, high = report.values.low_bytes, report.values.high_bytes
    if low is None or high is None:
        return ""
    return f"Under the other choices of these rules the allocated peak is {format_bytes(low)} to {format_bytes(high)}."


def cautions(report: Report) -> tuple[str, ...]:
    """All that a reader must be warned of, the measurement's own warnings included."""
    found = list(report.warnings)
    if not report.attribution.agrees:
        found.append(
            f"the attributed pass peaked at {format_bytes(report.attribution.allocated_bytes)}, the plain one at "
            f"{format_bytes(report.peak.allocated_bytes)}: the total is right, the shares are approximate"
        )
    return tuple(found)


def verdict_word(verdict: Verdict) -> str:
    """The outcome in one word or two."""
    return {"fits": "fits", "squeezes": "squeezes in", "too_big": "does not fit"}[verdict.outcome]

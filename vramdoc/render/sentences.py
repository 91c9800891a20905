"""The sentences of a report, the same in every format. Plain text: each renderer escapes it for itself."""

from __future__ import annotations

from vramdoc.analysis.verdict import judge, steps_until_full
from vramdoc.render.style import label
from vramdoc.report import Report
from vramdoc.units import format_bytes

TIMELINE = "allocated memory over the operations of that step"
MODULES = "at the peak, children included"
LINES = "of your code, live at the peak"
BLOCKS = "single allocations live at the peak"

_TORCH_ADVICE = " If reserved but unallocated memory is large"  # what torch adds to every such message
_VERSIONS = (("torch", "torch"), ("cuda", "CUDA"), ("driver", "driver"))


def headline(report: Report) -> str:
    """The answer: fits or not, on what, and by how much."""
    verdict = judge(report)
    name = report.device.name + (f" (one of {report.device.count})" if report.device.count > 1 else "")
    spare = f"Fits {name} with {format_bytes(verdict.free_bytes)} to spare"
    if verdict.outcome == "fits":
        return spare
    if verdict.outcome == "grows":
        return f"{spare}, but grows by {format_bytes(report.growth_bytes_per_step)} every step"
    if verdict.outcome == "squeezes":
        return f"Squeezes into {name}: torch had to empty its cache {_count(verdict.retries, 'time')}"
    if not verdict.short_bytes:
        return f"Does not fit {name}"
    at_least = "at least " if report.device.kind == "real" else ""
    return f"Does not fit {name}: {at_least}{format_bytes(verdict.short_bytes)} short"


def subject(report: Report) -> str:
    """What was run."""
    return f"{report.target}, batch {report.batch_size}, {_count(report.steps, 'step')}"


def basis(report: Report) -> str:
    """What the figures come from."""
    parts = ["measured on this GPU" if report.device.kind == "real" else "predicted on a null GPU"]
    parts += [f"{name} {report.versions[key]}" for key, name in _VERSIONS if report.versions.get(key)]
    if report.step_seconds is not None:
        parts.append(f"{report.step_seconds * 1000:,.1f} ms a step")
    return ", ".join(parts)


def need(report: Report) -> str:
    """What the GPU must have, and its parts."""
    verdict = judge(report)
    needed, allocated = format_bytes(verdict.need_bytes), format_bytes(verdict.allocated_bytes)
    parts = f"{allocated} allocated + {format_bytes(verdict.cached_bytes)} cached"
    if report.peak.context_bytes is None:
        return f"{needed} reserved = {parts}; the CUDA context comes on top, its size is not known"
    about = "≈" if report.peak.context_estimated else ""
    return f"{needed} needed = {parts} + {about}{format_bytes(verdict.context_bytes)} context"


def limit(report: Report) -> tuple[str, ...]:
    """What happens under the GPU's limit where the step wants more than the GPU has; () where it does not."""
    limited = report.limited
    if limited is None:
        return ()
    tries = _count(limited.alloc_retries, "retry", "retries")
    if limited.completed:
        reserved = format_bytes(limited.reserved_bytes)
        return (
            f"Held to the GPU's memory the step completes after {tries}, with {reserved} reserved. "
            "Each retry waits for the GPU and frees cached memory: slow, and near the edge.",
        )
    where = f" in {label(limited.phase)}" if limited.phase else ""
    told = f"Held to the GPU's memory it runs out{where}, after {tries}."
    said = limited.out_of_memory.partition(_TORCH_ADVICE)[0]
    return (f"{told} torch says:", said) if said else (told,)


def peak_moment(report: Report) -> str:
    """How much, and when."""
    moment = f"{label(report.peak.phase)} of step {report.peak.step + 1} of {report.steps}"
    return f"{format_bytes(report.peak.allocated_bytes)}, in {moment}"


def growth(report: Report) -> str:
    """How memory moves from step to step."""
    size = report.growth_bytes_per_step
    if size == 0:
        return "No growth: every step ends with what the one before it ended with."
    if size < 0:
        return f"Shrinks by {format_bytes(-size)} from step to step: not settled yet, measure more steps."
    left = steps_until_full(report)
    until = f" The GPU is full after {left:,} more." if report.fits and left is not None else ""
    cause = "something outlives its step, such as a kept loss"
    return f"Grows by {format_bytes(size)} every step: {cause}.{until}"


def exactness(report: Report) -> str:
    """What the figures rest on."""
    if report.values.exact:
        real = report.device.kind == "real"
        return "Exact: every value was computed." if real else "Exact: no unknown value steered the step."
    count = _count(len(report.values.assumptions), "assumption")
    return f"Rests on {count} about values that only a real GPU computes:"


def value_range(report: Report) -> str:
    """What the assumptions can change, "" where that was not measured."""
    low, high = report.values.low_bytes, report.values.high_bytes
    if low is None or high is None:
        return ""
    between = f"{format_bytes(low)} to {format_bytes(high)}"
    return f"Under the other choices of these rules the allocated peak is {between}."


def cautions(report: Report) -> tuple[str, ...]:
    """All that a reader must be warned of, the measurement's own warnings included."""
    found = list(report.warnings)
    if not report.attribution.agrees:
        attributed = format_bytes(report.attribution.allocated_bytes)
        plain = format_bytes(report.peak.allocated_bytes)
        found.append(
            f"the attributed pass peaked at {attributed}, the plain one at {plain}: "
            "the total is right, the shares are approximate"
        )
    return tuple(found)


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"

"""Why a measure saves nothing, in words: from the run without it and the run with it. Pure."""

from __future__ import annotations

from vramdoc.advise import measures
from vramdoc.advise.candidate import Result
from vramdoc.report import Report
from vramdoc.units import format_bytes

_NOTHING = 0.001
"""Of the reserved peak: less than this is not worth a line of code."""

_ON_ACTIVATIONS = {"checkpointing", "micro_batch", "precision", "batch", "loss", "attention"}
_ON_GRADIENTS = {"update", "gradients"}
_WHERE = {
    "forward": "in the forward",
    "loss": "at the loss",
    "backward": "in the backward",
    "optimizer": "in the optimizer step",
    "after_step": "after the step",
    "load": "while the model is moved to the GPU",
}


def saves(base_bytes: int, after_bytes: int) -> bool:
    """Whether that many bytes less are worth it."""
    return base_bytes - after_bytes > _NOTHING * base_bytes


def reason(base: Report, result: Result) -> str:
    """Why ``result``, a run with one measure, needs no less than ``base``; "" where it does need less."""
    if result.error:
        return result.error
    before, after = base.peak.reserved_bytes, result.reserved_bytes
    if saves(before, after):
        return ""
    measure = measures.by_name(result.candidate.choices[-1].name)
    if base.peak.phase in ("optimizer", "after_step") and measure.axis in _ON_ACTIVATIONS | {"offload"}:
        return f"the peak is {_WHERE[base.peak.phase]}, when no activations live"
    moved = _moved(base, result)
    more = after - before
    if measure.name.endswith("_autocast") and more > 0:
        casts = f"the casts of weights, kept until backward, are {format_bytes(more)} more than activations shrink"
        return f"{casts}: weights outweigh activations here"
    if more > _NOTHING * before:
        return f"it needs {format_bytes(more)} more: {moved or 'what it adds outweighs what it frees'}"
    return moved or _same_place(base, measure.axis, measure.name)


def _moved(base: Report, result: Result) -> str:
    """That the peak is elsewhere now, or that only the cache has kept it up."""
    if result.measurement is None:
        return ""
    phase = result.measurement.peak_phase
    saved = base.peak.allocated_bytes - result.allocated_bytes
    if saves(base.peak.allocated_bytes, result.allocated_bytes):
        where = f" (now {_WHERE[phase]})" if phase != base.peak.phase else ""
        return f"the allocated peak falls by {format_bytes(saved)}{where}, but the allocator reserves as much as before"
    return ""


def _same_place(base: Report, axis: str, name: str) -> str:
    phase = base.peak.phase
    at = f"the peak is {_WHERE[phase]}"
    if name == "expandable_segments":
        cached = base.peak.reserved_bytes - base.peak.allocated_bytes
        return f"nothing is fragmented: {format_bytes(cached)} of the reserved peak is cached, and all of it is in use"
    if axis == "kernels":
        return at if phase != "optimizer" else "the optimizer step has no temporaries to save"
    if axis in _ON_GRADIENTS:
        return f"{at}, where few gradients live" if phase in ("forward", "loss") else f"{at} either way"
    if axis == "checkpointing":
        return "each block's input is as large as what it saves"
    if axis in _ON_ACTIVATIONS | {"offload"}:
        small = base.categories["activations"]
        return f"activations are only {format_bytes(small)} of the peak" if small else f"{at}, when no activations live"
    if axis == "optimizer":
        return f"{at}: its state is as large there as before"
    return f"{at}, which it does not touch"

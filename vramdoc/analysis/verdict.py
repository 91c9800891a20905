"""Does the step fit its GPU, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vramdoc.report import Report

Outcome = Literal["fits", "grows", "squeezes", "too_big"]
"""``grows``: fits now, but a longer run fills the GPU. ``squeezes``: completes only because the allocator gives
cached memory back on the way."""

_LONG_RUN = 100_000  # steps; growth that would need more to fill the GPU is told, but is no verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to the first question, and the parts of the GPU's memory that add up to its total."""

    outcome: Outcome
    allocated_bytes: int
    cached_bytes: int  # reserved, not allocated, when the reserved peak was reached
    context_bytes: int  # 0 where it is not known
    free_bytes: int  # 0 where the step is over the total
    short_bytes: int  # how much is lacking; 0 where nothing is
    retries: int  # torch's num_alloc_retries

    @property
    def need_bytes(self) -> int:
        """What the GPU must have for the step to run freely."""
        return self.allocated_bytes + self.cached_bytes + self.context_bytes


def judge(report: Report) -> Verdict:
    """The verdict of ``report``: its own ``fits``, and at what price."""
    retries = report.limited.alloc_retries if report.limited is not None else report.alloc_retries
    return Verdict(
        outcome=_outcome(report, retries),
        allocated_bytes=report.peak.allocated_bytes,
        cached_bytes=max(report.peak.reserved_bytes - report.peak.allocated_bytes, 0),
        context_bytes=report.peak.context_bytes or 0,
        free_bytes=max(report.spare_bytes, 0),
        short_bytes=max(-report.spare_bytes, 0),
        retries=retries,
    )


def steps_until_full(report: Report) -> int | None:
    """Whole steps until a growing run would fill its GPU; None where it does not grow."""
    if report.growth_bytes_per_step <= 0:
        return None
    return max(report.spare_bytes, 0) // report.growth_bytes_per_step


def _outcome(report: Report, retries: int) -> Outcome:
    if not report.fits:
        return "too_big"
    if retries or report.spare_bytes < 0:
        return "squeezes"
    left = steps_until_full(report)
    return "grows" if left is not None and left < _LONG_RUN else "fits"

"""Does the step fit its GPU, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vramdoc.report import Report

Outcome = Literal["fits", "squeezes", "too_big"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to the first question, and the parts of the GPU's memory that add up to its total."""

    outcome: Outcome  # "squeezes": completes only because the allocator gives cached memory back on the way
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
    """The verdict of ``report``: its own ``fits``, and whether retries were the price."""
    retries = report.limited.alloc_retries if report.limited is not None else report.alloc_retries
    outcome: Outcome = "too_big"
    if report.fits:
        outcome = "squeezes" if retries or report.spare_bytes < 0 else "fits"
    return Verdict(
        outcome=outcome,
        allocated_bytes=report.peak.allocated_bytes,
        cached_bytes=max(report.peak.reserved_bytes - report.peak.allocated_bytes, 0),
        context_bytes=report.peak.context_bytes or 0,
        free_bytes=max(report.spare_bytes, 0),
        short_bytes=max(-report.spare_bytes, 0),
        retries=retries,
    )

"""What is asked of a report. Sizes are bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from vramdoc.report import Report
from vramdoc.report.findings import Metric

Kind = Literal["total", "category", "phase", "module"]

Advisor = Callable[[Report, int], str]
"""Given a report and the bytes that it has too much: the cheapest measure against it as one sentence, or ""."""


def no_advice(_report: Report, _excess_bytes: int) -> str:
    """The advisor of those who want no hint."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A size, or a share of a whole that is known later: exactly one of ``bytes`` and ``share``."""

    text: str  # as it was written: "22GiB", "80%"
    bytes: int | None = None
    share: float | None = None  # 0.8

    def of(self, whole: int) -> int:
        """The amount in bytes, where the whole is ``whole`` bytes."""
        return self.bytes if self.bytes is not None else round((self.share or 0.0) * whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one check allows."""

    name: str  # unique; the key of its entry in a baseline
    limit: Amount | None  # a share is one of the GPU's memory; None: only increases are looked at
    metric: Metric = "reserved"
    message: str = ""  # the team's own words to whoever breaks it


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How much one figure may grow over its baseline; a share is one of the baseline's figure."""

    kind: Kind
    name: str  # "peak", "activations", "backward", "blocks.*.mlp"
    amount: Amount

    @property
    def subject(self) -> str:
        """The figure as text: ``peak``, ``phase backward``, ``module blocks.*.mlp``."""
        return self.name if self.kind in ("total", "category") else f"{self.kind} {self.name}"

"""What fills the peak, in the order of a table and in that of a chart."""

from __future__ import annotations

from vramdoc.report import Report
from vramdoc.report.model import Category

STACKING: tuple[Category, ...] = (
    "parameters",
    "buffers",
    "optimizer_state",
    "gradients",
    "activations",
    "autocast_cache",
    "inputs",
    "communication",
    "workspace",
    "temporaries",
    "optimizer_temporaries",
    "rounding",
)
"""The categories from what stays longest to what goes first: the order in which charts stack them."""


def peak_shares(report: Report) -> tuple[tuple[Category, int], ...]:
    """(category, bytes) of what is there at the peak, largest first, ``rounding`` last."""
    present = [(name, size) for name, size in report.categories.items() if size]
    return tuple(sorted(present, key=lambda row: (row[0] == "rounding", -row[1])))


def fraction(part: int, whole: int) -> float:
    """``part`` of ``whole``, 0 where the whole is nothing."""
    return part / whole if whole else 0.0

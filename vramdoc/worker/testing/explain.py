"""The words of a failed limit: pure."""

from __future__ import annotations

from collections.abc import Sequence

from vramdoc.report import LineRow
from vramdoc.report.testing import Figures, Terms
from vramdoc.units import format_bytes
from vramdoc.worker.testing.reading import Reading

_ROWS = 3
_LEAST_STEPS = 3


def measured_bytes(figures: Figures, terms: Terms) -> int:
    """What the limit is held against."""
    if terms.metric == "allocated":
        return figures.peak_allocated_bytes
    return figures.peak_reserved_bytes + (terms.context_bytes if terms.metric == "device" else 0)


def broken(figures: Figures, terms: Terms) -> list[str]:
    """One line for each limit that does not hold."""
    lines = []
    measured = measured_bytes(figures, terms)
    if terms.limit_bytes is not None and measured > terms.limit_bytes:
        lines.append(
            f"limit_vram: peaks at {format_bytes(measured)}, which is {format_bytes(measured - terms.limit_bytes)} "
            f"over the limit of {format_bytes(terms.limit_bytes)} ({terms.metric}, {terms.gpu})"
        )
    if terms.growth_limit_bytes is None:
        return lines
    if figures.growth_bytes is None:
        lines.append(
            f"limit_growth: needs {_LEAST_STEPS} steps to tell, and saw {figures.steps}: step an optimizer "
            "as often, or use `with vram.step()`"
        )
    elif figures.growth_bytes > terms.growth_limit_bytes:
        lines.append(
            f"limit_growth: each step leaves {format_bytes(figures.growth_bytes)} behind, and "
            f"{format_bytes(terms.growth_limit_bytes)} is the limit ({figures.steps} steps, {terms.gpu})"
        )
    return lines


def explanation(reading: Reading, leak: Sequence[LineRow]) -> str:
    """What the peak is made of, and what is left of the steps (``leak``: largest first)."""
    phases = ", ".join(f"{phase.name} {format_bytes(phase.peak_bytes)}" for phase in reading.phases)
    categories = sorted(reading.categories.items(), key=lambda item: -item[1])
    named = [f"{name} {format_bytes(size)}" for name, size in categories if size > 0]
    rows = [("at the peak", f"{reading.phase} (peaks: {phases})"), ("by category", ", ".join(named[: 2 * _ROWS]))]
    modules = sorted((row for row in reading.modules if _is_leaf(row.name, reading)), key=lambda row: -row.total_bytes)
    rows += _listed(
        "by module",
        [f"{format_bytes(row.total_bytes):>10}  {row.name or '(model)'}  {row.class_name}" for row in modules],
    )
    rows += _listed("by line", [_line(row) for row in reading.lines])
    rows += _listed("left behind", [_line(row) for row in leak])
    return "\n".join(f"{head:<11}  {text}" for head, text in rows if text)


def _is_leaf(name: str, reading: Reading) -> bool:
    below = f"{name}." if name else ""
    return not any(row.name != name and row.name.startswith(below) for row in reading.modules)


def _line(row: LineRow) -> str:
    return f"{format_bytes(row.bytes):>10}  {row.file}:{row.line}  {row.code}"


def _listed(head: str, texts: list[str]) -> list[tuple[str, str]]:
    return [(head if index == 0 else "", text) for index, text in enumerate(texts[:_ROWS])]

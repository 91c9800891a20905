"""What fills the peak of the target as it is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from vramdoc.report import Report
from vramdoc.report.measurement import RepeatedBlocks
from vramdoc.report.model import ModuleRow

_STATE = ("parameters", "gradients", "optimizer_state", "buffers", "optimizer_temporaries")
_GROWS = ("activations", "autocast_cache", "inputs", "temporaries")


def state_bytes(report: Report) -> int:
    """What does not depend on the batch: parameters, gradients, the optimizer's state and what it needs to step."""
    return sum(report.categories[name] for name in _STATE)


def activation_bytes(report: Report) -> int:
    """What grows with the batch: activations, casts that autocast keeps, inputs, intermediate results."""
    return sum(report.categories[name] for name in _GROWS)


def saved_by_block(modules: Sequence[ModuleRow], blocks: RepeatedBlocks | None) -> tuple[int, ...]:
    """Bytes of activations that each repeated block holds at the peak, in the model's order; () where none repeat."""
    if blocks is None:
        return ()
    rows = [row for row in modules if row.class_name == blocks.class_name]
    if len(rows) != blocks.count:
        # Blocks within blocks, or a table that was cut: nothing is known of single ones, so all count alike.
        return (1,) * blocks.count
    return tuple(row.activation_bytes for row in rows)

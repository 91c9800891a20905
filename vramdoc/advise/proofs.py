"""Shows, on the host, that measures of the tiers free and speed leave gradients as they were."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vramdoc.errors import VramdocError
from vramdoc.report.advice import Effect, Proof
from vramdoc.report.measurement import Request
from vramdoc.runner.pool import Pool

_SAME_RESULT = ("free", "speed")


def prove(pool: Pool, base: Request, effects: Iterable[Effect]) -> tuple[Proof, ...]:
    """A proof for each measure that applies and promises the same result."""
    return tuple(
        _proof(pool, base, effect)
        for effect in effects
        if effect.tier in _SAME_RESULT and effect.reserved_bytes is not None
    )


def _proof(pool: Pool, base: Request, effect: Effect) -> Proof:
    found = pool.verify(replace(base, measures=(effect.choice,), verify=True, operations=False))
    if isinstance(found, VramdocError):
        return Proof(name=effect.choice.name, largest_difference=None, largest_value=0.0, copy="", error=found.message)
    return Proof(
        name=effect.choice.name,
        largest_difference=found.largest_difference,
        largest_value=found.largest_value,
        copy=found.copy,
    )

"""Tells the steps of a test apart, and what each leaves behind."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from vramdoc.worker.testing.watch import allocator_stats

_SETTLED = 2
"""Steps until memory is steady: the first makes the optimizer's state, the second is the first with all of it."""


class Steps:
    """Allocated bytes after each step: of every optimizer by itself, since a test may alternate between several."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()  # no optimizer is kept alive
        self._ends: list[list[int]] = []
        self._hook: Any = None

    def __enter__(self) -> Self:
        self._hook = register_optimizer_step_post_hook(lambda optimizer, *_: self.ended(optimizer))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._hook.remove()

    def ended(self, key: Any) -> None:
        """A step of ``key`` has ended."""
        if torch.cuda.is_initialized():
            if key not in self._known:
                self._known[key] = []
                self._ends.append(self._known[key])
            self._known[key].append(allocator_stats()["allocated_bytes"]["all"]["current"])

    @property
    def count(self) -> int:
        """How many steps there were."""
        return max(map(len, self._ends), default=0)

    def growth_bytes(self) -> int | None:
        """What a step left behind on average, from the third on, rounded up; None for fewer than three."""
        grown = [
            -(-(ends[-1] - ends[_SETTLED - 1]) // (len(ends) - _SETTLED)) for ends in self._ends if len(ends) > _SETTLED
        ]
        return max(grown, default=None)

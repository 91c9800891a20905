"""Host shadows of small device tensors, kept during a whole run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from vramdoc.report.model import Assumption
from vramdoc.worker.dispatch import Interception
from vramdoc.worker.values.calls import Call, operator
from vramdoc.worker.values.collectives import collective_of
from vramdoc.worker.values.context import Context
from vramdoc.worker.values.kernels import KernelWatch
from vramdoc.worker.values.reads import handler_of
from vramdoc.worker.values.replay import run


class ValueShadow:
    """Answers what a program reads back from a null GPU: from shadows, or by the rules of ``vramdoc.assumptions``.

    ::

        with ValueShadow(assume={"routing": "skewed"}) as shadow:
            ...  # the whole run: build, move to the device, steps
        shadow.exact, shadow.assumptions()

    What derives from host data (uploads, constants, ranges) is repeated on the host and exact. The device memory
    that a program takes is that of the same program with these values; shadows themselves take none, and
    torch.compile stays on. Raises :class:`vramdoc.errors.UsageError` where ``assume`` names no rule or choice.
    """

    def __init__(self, assume: Mapping[str, str] | None = None) -> None:
        self._context = Context(assume or {})
        self._interception = Interception(self._observe)
        self._watch = KernelWatch(self._context.store)
        self._lifted_on_host = False

    def __enter__(self) -> ValueShadow:
        # torch.tensor(..., device="cuda") hides its upload, unless it is told to build on the host first.
        self._lifted_on_host = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)
        self._interception.start()
        self._watch.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._watch.stop()
        self._interception.stop()
        torch._C._set_only_lift_cpu_tensors(self._lifted_on_host)

    def assumptions(self) -> tuple[Assumption, ...]:
        """The unknown values that the program has read so far, the most read first."""
        return self._context.assumptions()

    @property
    def exact(self) -> bool:
        """Whether every value that the program has read derives from host data."""
        return not self._context.assumptions()

    def _observe(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = Call(func, args, kwargs, operator(func))
        handler = collective_of(call) or handler_of(call)
        return run(self._context, call) if handler is None else handler(self._context, call)

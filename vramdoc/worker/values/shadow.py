"""The dispatch mode that keeps host shadows of small device tensors during a whole run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.utils._python_dispatch import TorchDispatchMode

from vramdoc.report.model import Assumption
from vramdoc.worker.values.calls import Call, operator
from vramdoc.worker.values.collectives import collective_of
from vramdoc.worker.values.context import Context
from vramdoc.worker.values.kernels import KernelWatch
from vramdoc.worker.values.reads import handler_of
from vramdoc.worker.values.replay import run

_PLAIN = torch._C._disabled_torch_dispatch_impl


class ValueShadow(TorchDispatchMode):
    """Answers what a program reads back from a null GPU: from shadows, or by the rules of ``vramdoc.assumptions``.

    ::

        with ValueShadow(assume={"routing": "skewed"}) as shadow:
            ...  # the whole run: build, move to the device, steps
        shadow.exact, shadow.assumptions()

    What derives from host data (uploads, constants, ranges) is repeated on the host and exact. The device memory
    that a program takes is that of the same program with these values; shadows themselves take none.
    Raises :class:`vramdoc.errors.UsageError` where ``assume`` names no rule or choice.
    """

    supports_higher_order_operators = True

    def __init__(self, assume: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._context = Context(assume or {})
        self._watch = KernelWatch(self._context.store)
        self._lifted_on_host: list[bool] = []

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Keeps torch.compile on: with a mode that says no, it silently runs everything eagerly."""
        return True

    def __enter__(self) -> ValueShadow:
        # torch.tensor(..., device="cuda") hides its upload, unless it is told to build on the host first.
        self._lifted_on_host.append(torch._C._only_lift_cpu_tensors())
        torch._C._set_only_lift_cpu_tensors(True)
        self._watch.start()
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._watch.stop()
        torch._C._set_only_lift_cpu_tensors(self._lifted_on_host.pop())

    def assumptions(self) -> tuple[Assumption, ...]:
        """The unknown values that the program has read so far, the most read first."""
        return self._context.assumptions()

    @property
    def exact(self) -> bool:
        """Whether every value that the program has read derives from host data."""
        return not self._context.assumptions()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, OpOverload):
            return func(*args, **kwargs)  # higher-order operators: what they run inside is not seen, nor known
        call = Call(func, args, kwargs, operator(func))
        for tensor in call.tensors():
            if isinstance(tensor, (FakeTensor, FunctionalTensor)):
                return call.run()
            if type(tensor).__torch_dispatch__ is not _PLAIN:
                return NotImplemented  # a wrapper (DTensor): its own operators on plain tensors come by here again
        handler = collective_of(call) or handler_of(call)
        return run(self._context, call) if handler is None else handler(self._context, call)

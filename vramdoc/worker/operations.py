"""Records what one whole step asks of the GPU: each operation's arithmetic, bytes, data type and launches.

A dispatch mode sees every operation; the kernels that torch.compile made, or that the user wrote in Triton, come by
their launcher instead. Collectives between ranks are counted apart. While a dispatch mode is active autograd adds
gradients up in new tensors, so memory may differ: a recorded step is one of its own, after the peak has been read.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from vramdoc import nullgpu
from vramdoc.errors import InstallError
from vramdoc.report.operations import Collective, Operation, OperationKind
from vramdoc.worker import collectives
from vramdoc.worker import operation_kinds as kinds
from vramdoc.worker.nests import tensors_of
from vramdoc.worker.operation_bytes import bytes_moved, size_of

_Row = tuple[str, str, OperationKind, str, int, int, tuple[int, ...], bool, bool]
"""What like calls share: op, phase, kind, dtype, flops, bytes, shape, channels_last, overlapped."""
_PLAIN = torch._C._disabled_torch_dispatch_impl
_COMPILED = "torch._inductor.runtime.triton_heuristics"


class OperationRecorder(TorchDispatchMode):
    """Records within ``with OperationRecorder(phase) as recorder``; ``phase`` says which phase it is now."""

    def __init__(self, phase: Callable[[], str]) -> None:
        super().__init__()
        self._phase = phase
        self._calls: Counter[_Row] = Counter()
        self._launches: Counter[_Row] = Counter()
        self.times = 1  # how often what is recorded now happens in a step
        self._within = False  # an operation: the kernels that it launches are its own
        self._stream = torch.cuda.current_stream().cuda_stream
        self._counted = _can_count()
        self._kernels = _KernelLaunches(self._kernel)
        self._collectives = collectives.CollectiveCounter()

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Keeps torch.compile on: a mode without this switches it off silently."""
        return True

    def __enter__(self) -> OperationRecorder:
        torch._dynamo.trace_rules.add(__name__)
        self._kernels.start()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._kernels.stop()

    def operations(self) -> tuple[Operation, ...]:
        """What was recorded, like calls in one row, in the order of each row's first call."""
        return tuple(
            Operation(
                op=op,
                phase=phase,
                kind=kind,
                dtype=dtype,
                count=self._calls[row],
                flops=flops,
                bytes=size,
                launches=self._launches[row] / self._calls[row],
                shape=shape,
                channels_last=channels_last,
                overlapped=overlapped,
            )
            for row in self._calls
            for op, phase, kind, dtype, flops, size, shape, channels_last, overlapped in (row,)
        )

    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of this rank."""
        return self._collectives.collectives()

    def __torch_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if any(getattr(kind, "__torch_dispatch__", _PLAIN) is not _PLAIN for kind in types):
            return NotImplemented  # a wrapper (DTensor): what it does with its plain tensors comes by here again
        if func.namespace in collectives.NAMESPACES:
            result = func(*args, **kwargs)
            self._collectives.count(func, args, kwargs, result, self._phase(), self.times)
            return result
        if func.namespace == "prim":
            return func(*args, **kwargs)
        outer, self._within = self._within, True
        before = self._count()
        try:
            result = func(*args, **kwargs)
        finally:
            self._within = outer
        self._note(func, args, kwargs, result, self._count() - before)
        return result

    def _count(self) -> int:
        return nullgpu.counters().launches if self._counted else 0

    def _note(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any, launches: int
    ) -> None:
        name = f"{func.namespace}.{func.overloadpacket.__name__}"
        if func.is_view and isinstance(args[0], Tensor) and args[0].is_cuda:
            self._add(name, "view", "", launches=0)  # at once: half of all operations are views
            return
        read = list(tensors_of((*args, *kwargs.values())))
        made = list(tensors_of(result))
        devices = {tensor.device.type for tensor in (*read, *made)}
        if devices == {"cpu", "cuda"} and func.overloadpacket.__name__ in ("_to_copy", "copy_"):
            self._add_host_copy(read, made, launches)
        elif "cuda" not in devices:
            self._add_host(name, func, args, kwargs, result)
        elif func.is_view or (self._counted and not launches and not kinds.copies_memory(func)):
            self._add(name, "view", "", launches=0)
        else:
            kind = kinds.kind_of(func, args)
            self._add(
                name,
                kind,
                kinds.dtype_of(kind, read, made),
                launches=launches or 1,
                flops=kinds.flops_of(func, kind, args, kwargs, result),
                size=bytes_moved(func, args, kwargs, result),
                shape=kinds.shape_of(func, kind, args),
                channels_last="convolution" in kind and kinds.is_channels_last(args),
            )

    def _add_host_copy(self, read: list[Tensor], made: list[Tensor], launches: int) -> None:
        target = made[0] if made else read[0]
        source = next((t for t in read if t.device.type != target.device.type), target)
        name = "to_gpu" if target.device.type == "cuda" else "to_host"
        overlapped = torch.cuda.current_stream().cuda_stream != self._stream
        dtype = str(source.dtype).removeprefix("torch.")
        self._add(name, "host_copy", dtype, launches=launches, size=source.nbytes, overlapped=overlapped)

    def _add_host(
        self, name: str, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        size = 0 if func.is_view else bytes_moved(func, args, kwargs, result)
        self._add(name, "host" if size else "view", "", launches=0, size=size)

    def _kernel(self, name: str, arguments: Iterable[Any]) -> None:
        if not self._within:
            tensors = list(tensors_of(tuple(arguments)))
            dtype = kinds.dtype_of("compiled", tensors, []) if tensors else ""
            self._add(name, "compiled", dtype, launches=1, size=sum(map(size_of, tensors)))

    def _add(
        self,
        op: str,
        kind: OperationKind,
        dtype: str,
        *,
        launches: int,
        flops: int = 0,
        size: int = 0,
        shape: tuple[int, ...] = (),
        channels_last: bool = False,
        overlapped: bool = False,
    ) -> None:
        row = (op, self._phase(), kind, dtype, flops, size, shape, channels_last, overlapped)
        self._calls[row] += self.times
        self._launches[row] += launches * self.times


class _KernelLaunches:
    """Tells ``launched`` of every Triton kernel, between :meth:`start` and :meth:`stop`."""

    def __init__(self, launched: Callable[[str, Iterable[Any]], None]) -> None:
        self._launched = launched
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        """Watches the launchers that are loaded by now: a recorded step is not the first."""
        if "triton.runtime.jit" in sys.modules:
            self._wrap(sys.modules["triton.runtime.jit"].JITFunction)
        if _COMPILED in sys.modules:
            self._wrap(sys.modules[_COMPILED].CachingAutotuner)

    def stop(self) -> None:
        """Puts everything back."""
        while self._undo:
            self._undo.pop()()

    def _wrap(self, owner: Any) -> None:
        launch = owner.run

        def launch_and_tell(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            result = launch(kernel, *args, **kwargs)
            name = getattr(getattr(kernel, "fn", kernel), "__name__", "")
            self._launched(name, (*args, *kwargs.values()))
            return result

        owner.run = launch_and_tell
        self._undo.append(lambda: setattr(owner, "run", launch))


def _can_count() -> bool:
    """Whether this process runs on a null GPU, which counts launches."""
    try:
        nullgpu.counters()
    except InstallError:
        return False
    return True

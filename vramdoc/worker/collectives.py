"""Collectives as the dispatcher sees them: what kind, how many bytes, among how many ranks on how many machines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.distributed import ProcessGroup
from torch.distributed import distributed_c10d as c10d

from vramdoc.report.operations import Collective, CollectiveOp
from vramdoc.worker import operation_kinds as kinds
from vramdoc.worker.nests import tensors_of

NAMESPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "symm_mem")
_RESULT = -1
_KINDS: dict[str, tuple[CollectiveOp, int]] = {
    "allreduce_": ("all_reduce", 0),
    "allreduce_coalesced_": ("all_reduce", 0),
    "all_reduce": ("all_reduce", 0),
    "all_reduce_": ("all_reduce", 0),
    "all_reduce_coalesced": ("all_reduce", 0),
    "all_reduce_coalesced_": ("all_reduce", 0),
    "allgather_": ("all_gather", 0),
    "_allgather_base_": ("all_gather", 0),
    "allgather_coalesced_": ("all_gather", 0),
    "allgather_into_tensor_coalesced_": ("all_gather", 0),
    "all_gather_into_tensor": ("all_gather", _RESULT),
    "all_gather_into_tensor_out": ("all_gather", _RESULT),
    "all_gather_into_tensor_coalesced": ("all_gather", _RESULT),
    "reduce_scatter_": ("reduce_scatter", 1),
    "_reduce_scatter_base_": ("reduce_scatter", 1),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", 1),
    "reduce_scatter_tensor": ("reduce_scatter", 0),
    "reduce_scatter_tensor_out": ("reduce_scatter", 0),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 0),
    "broadcast_": ("broadcast", 0),
    "broadcast": ("broadcast", 0),
    "reduce_": ("broadcast", 0),  # the same way back
    "scatter_": ("broadcast", 1),
    "gather_": ("broadcast", 0),
    "alltoall_": ("all_to_all", 1),
    "alltoall_base_": ("all_to_all", 1),
    "all_to_all_single": ("all_to_all", 0),
    "send": ("send_recv", 0),
    "recv_": ("send_recv", 0),
    "isend": ("send_recv", 0),
    "irecv": ("send_recv", 0),
}
"""Operator -> kind, and which argument holds the whole buffer: what all ranks together gather or reduce."""
_BESIDE: tuple[CollectiveOp, ...] = ("all_reduce", "all_gather", "reduce_scatter")
"""What is issued beside a computation. DDP's buffers and ZeRO-1's parameters are broadcast and waited for."""
_WAITED_FOR = ("optimizer", "after_step")
"""Phases in which nothing is computed beside a collective."""

_Row = tuple[CollectiveOp, str, str, int, int, int, bool]
"""What like collectives share: op, phase, dtype, bytes, group size, group span, overlapped."""


class CollectiveCounter:
    """Counts the collectives of a step. It is made where the computation's stream is the current one."""

    def __init__(self) -> None:
        self._calls: Counter[_Row] = Counter()
        self._stream = torch.cuda.current_stream().cuda_stream
        self._local_size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))

    def collectives(self) -> tuple[Collective, ...]:
        """What was counted, like calls in one row, in the order of each row's first call."""
        return tuple(
            Collective(
                op=op,
                phase=phase,
                dtype=dtype,
                count=count,
                bytes=size,
                group_size=ranks,
                group_span=span,
                overlapped=overlapped,
            )
            for (op, phase, dtype, size, ranks, span, overlapped), count in self._calls.items()
        )

    def count(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any, phase: str, times: int
    ) -> None:
        """Counts one call ``times`` over, where it moves tensors on the GPU between ranks."""
        kind, position = _KINDS.get(func.overloadpacket.__name__, (None, 0))
        if kind is None:
            return
        given = _by_name(func, args, kwargs)
        tensors = list(tensors_of(result if position == _RESULT else args[position]))
        if not tensors or tensors[0].device.type != "cuda":
            return
        members = c10d.get_process_group_ranks(_group(given))
        span = len({rank // self._local_size for rank in members})
        dtype = kinds.dtype_of("elementwise", tensors, [])
        size = sum(tensor.nbytes for tensor in tensors)
        overlapped = kind in _BESIDE and phase not in _WAITED_FOR and self._runs_beside(given)
        self._calls[kind, phase, dtype, size, len(members), span, overlapped] += times

    def _runs_beside(self, given: Mapping[str, Any]) -> bool:
        """Whether the computation goes on: DDP's asks for no wait, FSDP's is issued on a stream of its own."""
        return bool(given.get("async_op")) or torch.cuda.current_stream().cuda_stream != self._stream


def _by_name(func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument by name: the dispatcher leaves out what has its default value."""
    named = {argument.name: argument.default_value for argument in func._schema.arguments}
    return named | dict(zip(named, args, strict=False)) | dict(kwargs)


def _group(given: Mapping[str, Any]) -> ProcessGroup:
    """The group as Python knows it: a c10d operator is given its C++ side, a functional one its name."""
    name = ProcessGroup.unbox(given["process_group"]).group_name if "process_group" in given else given["group_name"]
    group: ProcessGroup = torch._C._distributed_c10d._resolve_process_group(name)
    return group

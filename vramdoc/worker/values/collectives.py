"""Collectives: what a rank holds after it has spoken with the others.

The schemas of ``c10d`` do not say what is written, so it is said here. In a group of one the result is exact; in a
larger one the other ranks are taken to hold what this one holds (rule ``ranks``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _resolve_process_group

from vramdoc.worker.nests import tensors_of
from vramdoc.worker.values.calls import Call
from vramdoc.worker.values.context import Context
from vramdoc.worker.values.store import Known

Handler = Callable[[Context, Call], Any]

_Combine = Callable[[torch.Tensor, torch.Size, int], torch.Tensor]
"""Host value of the input, shape of the output, ranks in the group; the output's value if all ranks are alike."""


def collective_of(call: Call) -> Handler | None:
    """The handler of ``call``, if it is a collective on device tensors that changes or returns values."""
    namespace = call.operator.name.partition(".")[0]
    if namespace == "c10d":
        return _run_in_place if call.operator.name in _IN_PLACE else None
    if namespace == "_c10d_functional":
        return _run_functional if call.operator.name in _FUNCTIONAL else None
    return None


def _same(value: torch.Tensor, shape: torch.Size, _ranks: int) -> torch.Tensor:
    return value.reshape(shape)


def _sum(value: torch.Tensor, shape: torch.Size, ranks: int) -> torch.Tensor:
    return (value * ranks).to(value.dtype).reshape(shape)


def _gather(value: torch.Tensor, shape: torch.Size, ranks: int) -> torch.Tensor:
    return torch.cat([value.reshape(-1)] * ranks).reshape(shape)


def _scatter(value: torch.Tensor, shape: torch.Size, _ranks: int) -> torch.Tensor:
    """The share of rank 0: which one is taken makes no difference where the ranks' values are assumed anyway."""
    return value.reshape(-1)[: shape.numel()].reshape(shape)


def _scatter_sum(value: torch.Tensor, shape: torch.Size, ranks: int) -> torch.Tensor:
    return _scatter(_sum(value, value.shape, ranks), shape, ranks)


def _exchange(value: torch.Tensor, shape: torch.Size, _ranks: int) -> torch.Tensor:
    """All-to-all: every rank sends what this one sends; the sizes agree where the splits do."""
    return value.reshape(shape)


_IN_PLACE: dict[str, tuple[_Combine, bool]] = {
    "c10d.allreduce_": (_sum, True),
    "c10d.allreduce_coalesced_": (_sum, True),
    "c10d.reduce_": (_sum, True),
    "c10d.broadcast_": (_same, True),
    "c10d.allgather_": (_same, False),
    "c10d.allgather_coalesced_": (_same, False),
    "c10d._allgather_base_": (_gather, False),
    "c10d.allgather_into_tensor_coalesced_": (_gather, False),
    "c10d.gather_": (_same, False),
    "c10d.scatter_": (_same, False),
    "c10d.reduce_scatter_": (_sum, False),
    "c10d._reduce_scatter_base_": (_scatter_sum, False),
    "c10d.reduce_scatter_tensor_coalesced_": (_scatter_sum, False),
    "c10d.alltoall_": (_same, False),
    "c10d.alltoall_base_": (_exchange, False),
    "c10d.recv_": (_same, True),
    "c10d.recv_any_source_": (_same, True),
}
"""How inputs become outputs, and whether the first argument is both."""

_FUNCTIONAL: dict[str, _Combine] = {
    "_c10d_functional.all_reduce": _sum,
    "_c10d_functional.all_reduce_": _sum,
    "_c10d_functional.broadcast": _same,
    "_c10d_functional.broadcast_": _same,
    "_c10d_functional.all_gather_into_tensor": _gather,
    "_c10d_functional.reduce_scatter_tensor": _scatter_sum,
    "_c10d_functional.all_to_all_single": _exchange,
}


def _run_in_place(context: Context, call: Call) -> Any:
    combine, in_place = _IN_PLACE[call.operator.name]
    outputs = list(tensors_of(call.args[0]))
    inputs = outputs if in_place else list(tensors_of(call.args[1]))
    is_device = any(tensor.device.type == "cuda" for tensor in outputs)
    # Read before it runs: an output may be a view of an input.
    known = [_copied(context.store.read(tensor)) for tensor in inputs] if is_device else []
    result = call.run()
    if not is_device:
        return result
    ranks = _ranks(call)
    if call.operator.name in ("c10d.recv_", "c10d.recv_any_source_"):
        known = [None] * len(inputs)  # what the sender holds has no like here
    combined = _reduced(call, combine)
    for position, output in enumerate(outputs):
        source = known[position * len(known) // len(outputs)] if known else None
        _settle(context, output, source, combined, ranks)
    return result


def _run_functional(context: Context, call: Call) -> Any:
    source = call.args[0]
    known = _copied(context.store.read(source))
    result = call.run()
    combine = _reduced(call, _FUNCTIONAL[call.operator.name])
    if isinstance(result, torch.Tensor) and result.device.type == "cuda":
        ranks = _resolve_process_group(call.args[-1]).size()
        _settle(context, result, known, combine, ranks)
    return result


def _settle(context: Context, output: torch.Tensor, source: Known | None, combine: _Combine | None, ranks: int) -> None:
    """Gives ``output`` its value after the collective, or makes it unknown."""
    context.store.forget(output)
    if source is None or combine is None or (ranks > 1 and context.choice("ranks") == "unknown"):
        return
    try:
        value = combine(source.value, output.shape, ranks)
    except RuntimeError:  # shapes that do not follow from equal ranks, as an all-to-all of unequal splits
        return
    context.store.put(output, value, source.rules | ({"ranks"} if ranks > 1 else frozenset()))


def _copied(known: Known | None) -> Known | None:
    return None if known is None else Known(known.value.clone(), known.rules)


def _ranks(call: Call) -> int:
    """Ranks in the group of an in-place collective."""
    return int(dist.ProcessGroup.unbox(_script_object(call, "ProcessGroup")).size())


def _reduced(call: Call, combine: _Combine) -> _Combine | None:
    """``combine`` for the reduction that ``call`` asks for: the average, minimum or maximum of equal values is the
    value itself, and a product is not followed."""
    reduction = _script_object(call, "ReduceOp")
    operation = call.args[1] if reduction is None else _REDUCTIONS.get(int(reduction.op()), "product")
    if combine not in (_sum, _scatter_sum) or operation == "sum":
        return combine
    if operation in ("product", "premul_sum", "bxor"):
        return None
    return _same if combine is _sum else _scatter


_REDUCTIONS = {
    int(getattr(dist.ReduceOp, name.upper())): name for name in ("sum", "avg", "min", "max", "band", "bor")
} if dist.is_available() else {}  # fmt: skip


def _script_object(call: Call, class_name: str) -> Any:
    for arg in call.args:
        if isinstance(arg, torch.ScriptObject) and str(arg._type()).endswith("." + class_name):
            return arg
    return None

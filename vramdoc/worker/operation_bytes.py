"""Bytes that one call of an operator reads and writes at least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from vramdoc.worker.nests import tensors_of

_UNREAD = {
    # Tables of which only the rows named are read: as much as comes out.
    **dict.fromkeys(("embedding", "index_select", "gather", "index", "nll_loss_forward"), 0),
    # Given for their shape alone.
    **dict.fromkeys(("nll_loss_backward", "max_pool2d_with_indices_backward"), 1),
    **dict.fromkeys(("zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_full"), 0),
    # Written without being read.
    **dict.fromkeys(("copy_", "fill_", "zero_", "normal_", "uniform_", "bernoulli_", "random_"), 0),
}
"""The argument of an operator whose bytes it does not read, by position."""
_COPIED_ROWS = ("embedding", "index_select", "gather", "index")
"""Operators whose result was read from a table, so that it counts twice."""


@dataclass(frozen=True, slots=True)
class _Signature:
    """How often an operator moves what it is given and what it makes."""

    arguments: tuple[tuple[str, int], ...]  # name, times
    results: tuple[int, ...]  # times; 0: an argument, returned


def bytes_moved(func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> int:
    """Each tensor given counts once, each one made or changed once; what lies in caches between does not matter."""
    signature = _signature(func)
    total = 0
    for (_, times), value in zip(signature.arguments, args, strict=False):
        if times:
            total += times * sum(map(size_of, tensors_of(value)))
    if kwargs:
        times_of = dict(signature.arguments)
        total += sum(times_of[name] * size_of(t) for name, value in kwargs.items() for t in tensors_of(value))
    results = result if isinstance(result, (tuple, list)) and len(signature.results) > 1 else (result,)
    for times, value in zip(signature.results, results, strict=False):
        if times:
            total += times * sum(map(size_of, tensors_of(value)))
    return total


@cache
def _signature(func: OpOverload) -> _Signature:
    name = func.overloadpacket.__name__
    arguments = []
    for position, argument in enumerate(func._schema.arguments):
        # Fused optimizers could write gradients, but only do so where they are told a scale.
        written = argument.alias_info is not None and argument.alias_info.is_write and argument.name != "grads"
        arguments.append((argument.name, int(position != _UNREAD.get(name)) + int(written)))
    made = 2 if name in _COPIED_ROWS else 1
    return _Signature(tuple(arguments), tuple(0 if r.alias_info else made for r in func._schema.returns))


def size_of(tensor: Tensor) -> int:
    """Bytes that lie in memory: an expanded dimension counts once."""
    if tensor.layout != torch.strided:
        return 0
    if tensor.is_contiguous():
        return tensor.nbytes
    count = tensor.element_size()
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride else 1
    return count

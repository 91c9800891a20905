"""Short cuts for an optimizer's operations over lists of sharded parameters.

DTensor works out by general rules how such an operation is sharded, for every parameter of the list anew: seconds for
a transformer, in a process that lives for three steps. An elementwise operation over lists whose members lie alike
runs on each rank's shards as they are, which is what those rules find, too. Any other goes DTensor's own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.distributed.tensor import DTensor, Partial

_ELEMENTWISE = (
    "add", "sub", "mul", "div", "addcmul", "addcdiv", "lerp", "sqrt", "rsqrt", "reciprocal", "neg", "sign", "abs",
    "pow", "exp", "maximum", "minimum", "clamp_min", "clamp_max", "copy", "zero",
)  # fmt: skip
_FUSED = ("_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_")


def install(stack: ExitStack) -> None:
    """Puts the short cuts in place until ``stack`` closes, where this torch lets operations have handlers."""
    handlers = getattr(getattr(DTensor, "_op_dispatcher", None), "_custom_op_handlers", None)
    if handlers is None:
        return
    for operation in _operations():
        if operation not in handlers:
            handlers[operation] = _handler(handlers)
            stack.callback(handlers.pop, operation, None)


def _operations() -> Iterator[OpOverload]:
    names = [*_FUSED, *(f"_foreach_{name}" for name in _ELEMENTWISE), *(f"_foreach_{name}_" for name in _ELEMENTWISE)]
    for name in names:
        packet = getattr(torch.ops.aten, name, None)
        if packet is not None:
            yield from (getattr(packet, overload) for overload in packet.overloads() if "out" not in overload)


def _handler(handlers: dict[OpOverload, Any]) -> Callable[..., Any]:
    def handle(operation: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _lie_alike([*args, *kwargs.values()]):
            own = handlers.pop(operation)
            try:
                return operation(*args, **kwargs)
            finally:
                handlers[operation] = own
        result = operation(*map(_local, args), **{name: _local(value) for name, value in kwargs.items()})
        if result is None:
            return None
        return [_as_shard(local, like) for local, like in zip(result, args[0], strict=True)]

    return handle


def _lie_alike(values: list[Any]) -> bool:
    """Whether all lists hold, place by place, shards of one layout; single numbers may lie anywhere."""
    layouts: dict[int, Any] = {}
    for value in values:
        for place, member in enumerate(value if isinstance(value, (list, tuple)) else ()):
            if isinstance(member, DTensor):
                layout = (member.device_mesh, member.placements, member.shape)
                if layouts.setdefault(place, layout) != layout or any(map(_is_partial, member.placements)):
                    return False
            elif isinstance(member, Tensor) and member.dim():
                return False
        if isinstance(value, Tensor) and (isinstance(value, DTensor) or value.dim()):
            return False
    return True


def _is_partial(placement: Any) -> bool:
    return isinstance(placement, Partial)


def _local(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [member._local_tensor if isinstance(member, DTensor) else member for member in value]
    return value


def _as_shard(local: Tensor, like: Any) -> Any:
    """``local`` as the shard of a DTensor that lies as ``like`` does."""
    if not isinstance(like, DTensor):
        return local
    return DTensor.from_local(
        local, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
    )

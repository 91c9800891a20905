"""Skips large random initialisers on the host while a model is built for a null GPU.

Their values do not matter there, and without them an 8B model builds in about a second and touches no memory.
Everything else the host computes is real.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

LARGE_BYTES = 1 << 20
"""Smaller tensors are filled: their values may steer the program, and uploads of this size read back."""

_aten = torch.ops.aten
_RANDOM_IN_PLACE = frozenset({_aten.normal_, _aten.uniform_, _aten.exponential_, _aten.log_normal_, _aten.cauchy_})
_RANDOM_NEW = frozenset({_aten.randn, _aten.rand})
# What initialisers do with a random tensor afterwards: the result is as arbitrary as its input.
_DERIVED_IN_PLACE = frozenset(
    {_aten.mul_, _aten.add_, _aten.sub_, _aten.div_, _aten.clamp_, _aten.erfinv_, _aten.copy_}
)
_DERIVED_NEW = frozenset({_aten._to_copy, _aten.clone, _aten.mul, _aten.add, _aten.sub, _aten.div, _aten.clamp})


class SkipInitialisers(TorchDispatchMode):
    """Within it, filling a large float tensor on the host with random numbers does nothing."""

    def __init__(self) -> None:
        super().__init__()
        # A weak reference keeps the storage's address from being used again, so that the key stays true.
        self._arbitrary: dict[int, StorageWeakRef] = {}

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Keeps torch.compile on: a mode without this switches it off silently."""
        return True

    def __torch_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        first: Any = args[0] if args else None
        on_host = kwargs.get("device") in (None, torch.device("cpu"))
        if packet in _RANDOM_NEW and on_host:
            dtype = kwargs.get("dtype") or torch.get_default_dtype()
            if math.prod(first) * dtype.itemsize >= LARGE_BYTES:
                return self._mark(torch.empty(first, dtype=dtype))
        elif _is_large(first):
            derived = any(map(self._is_arbitrary, args))
            if packet in _RANDOM_IN_PLACE or (derived and packet in _DERIVED_IN_PLACE):
                return self._mark(first)
            if derived and packet in _DERIVED_NEW and on_host:
                layout = kwargs.get("memory_format") or torch.preserve_format  # channels-last weights are so by a copy
                return self._mark(torch.empty_like(first, dtype=kwargs.get("dtype"), memory_format=layout))
        return func(*args, **kwargs)

    def _mark(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        self._arbitrary[storage._cdata] = StorageWeakRef(storage)
        return tensor

    def _is_arbitrary(self, value: object) -> bool:
        if not isinstance(value, Tensor) or value.device.type != "cpu":
            return False
        reference = self._arbitrary.get(value.untyped_storage()._cdata)
        return reference is not None and not reference.expired()


def _is_large(value: object) -> bool:
    return (
        isinstance(value, Tensor)
        and value.device.type == "cpu"
        and value.is_floating_point()
        and value.nbytes >= LARGE_BYTES
    )

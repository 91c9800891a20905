"""Leaves large host copies of a null GPU's tensors unwritten: they would be zeros, and take seconds and gigabytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from vramdoc.worker.initialisers import LARGE_BYTES

_aten = torch.ops.aten
Place = Callable[[nn.Module], nn.Module]


def skipping_host_copies(place: Place) -> Place:
    """``place`` that takes host memory for what it moves there, and does not write it."""

    def placed(model: nn.Module) -> nn.Module:
        with _SkipHostCopies():
            return place(model)

    return placed


class _SkipHostCopies(TorchDispatchMode):
    def __torch_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        first = args[0] if args else None
        if type(first) is Tensor and first.nbytes >= LARGE_BYTES:
            if func is _aten._to_copy.default and first.is_cuda and kwargs.get("device") == torch.device("cpu"):
                return torch.empty_like(first, dtype=kwargs.get("dtype"), device="cpu")
            if func is _aten._pin_memory.default and not first.is_pinned():
                return torch.empty_like(first, pin_memory=True)
        return func(*args, **kwargs)

"""Sees every operator on its way to the device, without a ``TorchDispatchMode``.

While any such mode is active, autograd itself behaves differently: it adds gradients up in new tensors instead of in
place (``at::isTensorSubclassLike``), which takes more memory, and torch.compile may be off. A fallback kernel at a
dispatch key that PyTorch keeps for out-of-tree use, below autograd and above the backends, changes neither. The key
is switched on for a thread, and autograd's own threads inherit it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

_KEY_NAME = "Fake"  # reserved for libraries outside PyTorch; PyTorch's own fake tensors use another
_KEY = torch._C._dispatch_key_parse(_KEY_NAME)
_ONLY_KEY = torch._C.DispatchKeySet(_KEY)
_BELOW_KEY = torch._C._dispatch_keyset_full_after(_KEY)

Observer = Callable[[OpOverload, tuple[Any, ...], dict[str, Any]], Any]
"""Takes the place of an operator: what it returns is the operator's result."""


class Interception:
    """Hands every operator below autograd to ``observer``, between :meth:`start` and :meth:`stop`.

    Within the observer operators run unobserved. One interception at a time.
    """

    _active: Interception | None = None
    _libraries: tuple[torch.library.Library, ...] = ()  # registrations live as long as the process

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._guard: Any = None

    def start(self) -> None:
        """Begins in this thread and in what autograd runs for it; RuntimeError where another is active."""
        if Interception._active is not None:
            raise RuntimeError("operators are being observed already")
        if not Interception._libraries:
            Interception._libraries = _register()
        Interception._active = self
        self._guard = torch._C._IncludeDispatchKeyGuard(_KEY)
        self._guard.__enter__()

    def stop(self) -> None:
        """Ends it."""
        self._guard.__exit__(None, None, None)
        Interception._active = None


def _fallback(keys: torch._C.DispatchKeySet, func: OpOverload, *args: Any, **kwargs: Any) -> Any:
    interception = Interception._active
    if interception is None or _has_own_dispatch(args, kwargs):
        # A wrapper (DTensor) or a tracer: its own operators on plain tensors come by here again.
        return func.redispatch(keys & _BELOW_KEY, *args, **kwargs)
    if _is_composite(func):
        return func.decompose(*args, **kwargs)  # in inference mode: its parts come by here
    with torch._C._ExcludeDispatchKeyGuard(_ONLY_KEY):
        return interception._observer(func, args, kwargs)


_PLAIN = torch._C._disabled_torch_dispatch_impl
_composite: dict[OpOverload, bool] = {}


def _is_composite(func: OpOverload) -> bool:
    answer = _composite.get(func)
    if answer is None:
        answer = _composite[func] = torch._C._dispatch_has_kernel_for_dispatch_key(
            func.name(), "CompositeImplicitAutograd"
        )
    return answer


def _has_own_dispatch(args: Any, kwargs: dict[str, Any]) -> bool:
    for values in (args, kwargs.values()):
        for value in values:
            if isinstance(value, torch.Tensor):
                kind = type(value)
                if kind is not torch.Tensor and kind.__torch_dispatch__ is not _PLAIN:
                    return True
            elif isinstance(value, (list, tuple)) and value and _has_own_dispatch(value, {}):
                return True
    return False


def _register() -> tuple[torch.library.Library, ...]:
    """Registers the fallback, and lets operators pass unseen that touch no values: views, and memory left unwritten.

    Some must pass: PyTorch makes a Parameter of what ``detach`` returns, which Python may not have seen before.
    """
    everything = torch.library.Library("_", "IMPL")
    everything.fallback(_fallback, _KEY_NAME, with_keyset=True)
    aten = torch.library.Library("aten", "IMPL")
    registered = torch._C._dispatch_get_registrations_for_dispatch_key
    for name in sorted({*registered("CompositeExplicitAutograd"), *registered("CUDA")}):
        namespace, _, short = name.partition("::")
        if namespace == "aten" and not _touches_values(name):
            aten.impl(short, torch.library.fallthrough_kernel, _KEY_NAME)
    return everything, aten


def _touches_values(name: str) -> bool:
    base, _, overload = name.partition(".")
    if base.removeprefix("aten::") in _UNWRITTEN:
        return False
    schema = torch._C._get_schema(base, overload)
    return schema.is_mutable or all(result.alias_info is None for result in schema.returns)


_UNWRITTEN = frozenset(
    {"empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided", "record_stream"}
)
"""Operators that make memory, or account for it, without writing to it."""

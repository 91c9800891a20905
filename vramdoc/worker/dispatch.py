"""Sees every operator on its way to the device, without a ``TorchDispatchMode``.

While any such mode is active, autograd itself behaves differently: it adds gradients up in new tensors instead of in
place (``at::isTensorSubclassLike``), which takes more memory, and torch.compile may be off. Kernels at a dispatch key
that PyTorch keeps for out-of-tree use, below autograd and above the backends, change neither. The key is switched on
for a thread, and autograd's own threads inherit it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

_KEY_NAME = "Fake"  # reserved for libraries outside PyTorch; PyTorch's own fake tensors use another
_KEY = torch._C._dispatch_key_parse(_KEY_NAME)
_ONLY_KEY = torch._C.DispatchKeySet(_KEY)
_BELOW_KEY = torch._C._dispatch_keyset_full_after(_KEY)

Observer = Callable[[OpOverload, tuple[Any, ...], dict[str, Any]], Any]
"""Takes the place of an operator: what it returns is the operator's result."""


class Interception:
    """Hands every operator below autograd to ``observer``, between :meth:`start` and :meth:`stop`.

    Within the observer operators run unobserved. Interceptions nest: the last one started sees an operator first and
    hands it on with :meth:`proceed`.
    """

    _active: Interception | None = None

    def __init__(self, observer: Observer) -> None:
        self.observe = observer
        self._outer: Interception | None = None
        self._guard: Any = None

    def start(self) -> None:
        """Begins in this thread and in what autograd runs for it."""
        _registry.update()
        self._outer, Interception._active = Interception._active, self
        self._guard = torch._C._IncludeDispatchKeyGuard(_KEY)
        self._guard.__enter__()

    def stop(self) -> None:
        """Ends it; the last one started ends first."""
        self._guard.__exit__(None, None, None)
        Interception._active = self._outer

    def proceed(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the operator would have given without this interception."""
        return func(*args, **kwargs) if self._outer is None else self._outer.observe(func, args, kwargs)

    @staticmethod
    def active() -> Interception | None:
        """The one that was started last."""
        return Interception._active


class _Kernel:
    """The kernel of one operator at the key."""

    __slots__ = ("_func", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._func: OpOverload | None = None

    def __call__(self, keys: torch._C.DispatchKeySet, *args: Any, **kwargs: Any) -> Any:
        if self._func is None:
            self._func = _overload(self._name)
        interception = Interception.active()
        wrapper = _wrapper_in(args, kwargs)
        if wrapper is not None and not issubclass(wrapper, _TRACERS):
            # A wrapper (DTensor): its own operators on plain tensors come by here again.
            return self._func.redispatch(keys & _BELOW_KEY, *_as_tensors(self._func, args), **kwargs)
        with torch._C._ExcludeDispatchKeyGuard(_ONLY_KEY):
            if wrapper is not None or interception is None:
                return self._func(*args, **kwargs)
            _registry.update()
            return interception.observe(self._func, args, kwargs)


def _overload(name: str) -> OpOverload:
    namespace, _, short = name.partition("::")
    base, _, overload = short.partition(".")
    found = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    assert isinstance(found, OpOverload)
    return found


_PLAIN = torch._C._disabled_torch_dispatch_impl
_TRACERS = (FakeTensor, FunctionalTensor)


def _wrapper_in(args: Any, kwargs: dict[str, Any]) -> type | None:
    """The class of an argument that brings its own dispatch."""
    for values in (args, kwargs.values()):
        for value in values:
            if isinstance(value, torch.Tensor):
                kind = type(value)
                if kind is not torch.Tensor and kind.__torch_dispatch__ is not _PLAIN:
                    return kind
            elif isinstance(value, (list, tuple)) and value:
                found = _wrapper_in(value, {})
                if found is not None:
                    return found
    return None


def _as_tensors(func: OpOverload, args: tuple[Any, ...]) -> list[Any]:
    """``args`` with numbers made tensors where the schema wants tensors: PyTorch hands them over as numbers."""
    return [
        torch.scalar_tensor(value) if type(value) in (int, float, bool) and str(argument.type) == "Tensor" else value
        for value, argument in zip(args, func._schema.arguments, strict=False)
    ]


class _Registry:
    """Which operators have a kernel at the key. Registrations live as long as the process.

    All others fall through: views and memory left unwritten, by which no values change, and compositions, whose
    parts come by here. Some must: PyTorch makes a Parameter of what ``detach`` returns, which Python may not have
    seen before.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._libraries: dict[str, torch.library.Library] = {}
        self._modules = 0

    def update(self) -> None:
        """Registers what has come since the last time; cheap where no module was imported since."""
        if len(sys.modules) == self._modules:
            return
        self._modules = len(sys.modules)
        if not self._libraries:
            self._libraries["_"] = torch.library.Library("_", "IMPL")
            self._libraries["_"].fallback(torch.library.fallthrough_kernel, _KEY_NAME)
        for name in torch._C._dispatch_get_all_op_names():
            if name not in self._seen:
                self._seen.add(name)
                namespace, _, short = name.partition("::")
                if _touches_values(name, short):
                    if namespace not in self._libraries:
                        self._libraries[namespace] = torch.library.Library(namespace, "IMPL")
                    self._libraries[namespace].impl(short, _Kernel(name), _KEY_NAME, with_keyset=True)


def _touches_values(name: str, short: str) -> bool:
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
        return False
    base, _, overload = name.partition(".")
    if short.partition(".")[0] in _UNWRITTEN:
        return False
    schema = torch._C._get_schema(base, overload)
    return schema.is_mutable or all(result.alias_info is None for result in schema.returns)


_UNWRITTEN = frozenset(
    {"empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided", "record_stream"}
)
"""Operators that make memory, or account for it, without writing to it."""

_registry = _Registry()


def prepare() -> None:
    """Registers the kernels for all operators that there are now; a forked child has them then."""
    _registry.update()

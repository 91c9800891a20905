"""Triton kernels: they write to tensors without the dispatcher's knowledge.

Kernels that torch.compile has made say which arguments they write. Others do not, and everything that they are given
counts as written: a value that may have changed must not pass for exact.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

from vramdoc.worker.values.store import ValueStore

_COMPILED = "torch._inductor.runtime.triton_heuristics"
_WRITTEN_PREFIXES = ("out_ptr", "in_out_ptr")


class KernelWatch:
    """Makes values unknown that Triton kernels write, between :meth:`start` and :meth:`stop`."""

    def __init__(self, store: ValueStore) -> None:
        self._store = store
        self._undo: list[Callable[[], None]] = []
        self._finder = _ImportWatch(_COMPILED, self._watch_compiled)

    def start(self) -> None:
        """Watches launches; modules that are imported later are caught when they are."""
        try:
            from triton.runtime.jit import JITFunction  # type: ignore[import-untyped]
        except ImportError:
            return  # no Triton, no kernels
        self._wrap(JITFunction, "run", _all_arguments)
        if _COMPILED in sys.modules:
            self._watch_compiled(sys.modules[_COMPILED])
        else:
            sys.meta_path.insert(0, self._finder)

    def stop(self) -> None:
        """Puts everything back."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        while self._undo:
            self._undo.pop()()

    def _watch_compiled(self, module: ModuleType) -> None:
        self._wrap(module.CachingAutotuner, "run", _written_arguments)

    def _wrap(self, owner: type, name: str, written: Callable[..., list[Any]]) -> None:
        launch = getattr(owner, name)
        store = self._store

        def launch_and_forget(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            result = launch(kernel, *args, **kwargs)
            for value in written(kernel, args, kwargs):
                if type(value) in (torch.Tensor, torch.nn.Parameter) and value.device.type == "cuda":
                    store.forget(value)
            return result

        setattr(owner, name, launch_and_forget)
        self._undo.append(lambda: setattr(owner, name, launch))


def _all_arguments(_kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    return [*args, *kwargs.values()]


def _written_arguments(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments of a compiled kernel that its generated names, or its record, say it writes."""
    names = list(kernel.fn.arg_names)
    mutated = set(kernel.mutated_arg_names)
    named = [*zip(names, args, strict=False), *kwargs.items()]
    return [value for name, value in named if name in mutated or name.startswith(_WRITTEN_PREFIXES)]


class _ImportWatch(importlib.abc.MetaPathFinder):
    """Calls ``then`` with the module ``name`` once, right after its import."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_tell(module: ModuleType) -> None:
            execute(module)
            self._then(module)

        spec.loader.exec_module = execute_and_tell  # type: ignore[method-assign]
        return spec

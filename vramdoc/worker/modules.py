"""Which module's forward runs now, in each thread."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

_register = nn.modules.module


class ModuleStack:
    """The names of the modules whose forward runs, innermost last; a list for each thread.

    ``changed`` is called with the innermost name ("" for none) at each entry and exit. torch.compile traces through
    these hooks, and finds them empty: a compiled module's inner modules do not run.
    """

    def __init__(self, changed: Callable[[str | None], None]) -> None:
        self.names: dict[int, str] = {}  # id of module -> qualified name
        self._changed = changed
        self._threads = threading.local()
        self._hooks: list[Any] = []

    def start(self) -> None:
        """Watches every module there is."""
        # A compiled module's own hooks fire twice then, which the balance of entries and exits allows for.
        warnings.filterwarnings("ignore", message=r"Using `torch.compile\(module\)` when there are global hooks")
        self._hooks = [
            _register.register_module_forward_pre_hook(self._enter),
            _register.register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self) -> None:
        """Watches no longer."""
        for hook in self._hooks:
            hook.remove()

    def innermost(self) -> str | None:
        """The innermost module of this thread; None where no forward runs."""
        stack = self._stack()
        return stack[-1] if stack else None

    def _stack(self) -> list[str]:
        stack: list[str] | None = getattr(self._threads, "names", None)
        if stack is None:
            stack = self._threads.names = []
        return stack

    def _enter(self, module: nn.Module, _inputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        stack = self._stack()
        # A module outside the model (a loss) counts to the one that calls it.
        stack.append(self.names.get(id(module), stack[-1] if stack else ""))
        self._changed(stack[-1])

    def _leave(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        if torch.compiler.is_compiling():
            return
        stack = self._stack()
        if stack:
            stack.pop()
        self._changed(stack[-1] if stack else None)

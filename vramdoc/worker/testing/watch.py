"""Finds the models, the steps and the phases of a test that tells nobody about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from vramdoc.worker.history import MARK, Recording
from vramdoc.worker.recording import Recorder, tensors_in


def allocator_stats() -> dict[str, dict[str, dict[str, int]]]:
    """The allocator's figures of the current device, nested as it gives them: ``torch.cuda.memory_stats`` is slow."""
    stats: dict[str, dict[str, dict[str, int]]] = torch._C._cuda_memoryStats(torch.cuda.current_device())
    return stats


class Watch:
    """Tells a recorder what it would be told by a training loop of our own.

    A model is a module with parameters that is called from outside any other. A step begins with its forward and ends
    with an optimizer's; the phases within it follow from calls of ``backward`` and ``step``.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._models: list[nn.Module] = []
        self._depth = 0  # of module calls
        self._in_backward = False
        self._phase, self._step = "build", 0
        self._changes: list[tuple[int, str]] = []  # events before it, mark
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        backward = torch.autograd.backward

        def watched_backward(*args: Any, **kwargs: Any) -> None:
            self._enter("backward")
            self._in_backward = True
            try:
                backward(*args, **kwargs)
            finally:
                self._in_backward = False

        torch.autograd.backward = watched_backward
        hooks = [
            register_module_forward_pre_hook(self._before_module),
            register_module_forward_hook(self._after_module, always_call=True),
            register_optimizer_step_pre_hook(self._before_optimizer),
            register_optimizer_step_post_hook(self._after_optimizer),
        ]
        self._undo = [hook.remove for hook in hooks]
        self._undo.append(lambda: setattr(torch.autograd, "backward", backward))
        # Not "load", of which an attribution names no lines: there it is a target's build_model, here the test's own.
        self._enter("build")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for undo in self._undo:
            undo()

    def start_call(self) -> None:
        """The test's own code begins: what came before is step 0."""
        self._enter("build", step=1)

    def begin_step(self) -> None:
        """A step begins, or goes on with another forward."""
        if self._phase == "after_step":
            self._enter("forward", self._step + 1)
        elif self._phase != "forward":
            self._enter("forward")

    def end_step(self) -> None:
        """A step has ended."""
        self._enter("after_step")

    def recording(self) -> Recording:
        """What was recorded so far, with the changes of phase."""
        # Not put in by the recorder: it hangs its marks of phases on a block of a model, and there may be none yet.
        device = torch.cuda.current_device()
        events = torch._C._cuda_memorySnapshot(None)["device_traces"][device]
        return replace(self._recorder.recording, events=_with_changes(events, self._changes))

    def _enter(self, phase: str, step: int | None = None) -> None:
        self._phase = phase
        self._step = self._step if step is None else step
        count = allocator_stats()["allocation"]["all"]
        self._changes.append((count["allocated"] + count["freed"], f"{MARK}phase {phase} {self._step}"))

    def _before_module(self, module: nn.Module, inputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self._depth += 1
        if self._depth > 1 or self._in_backward:
            return
        self.begin_step()
        if module not in self._models and any(parameter.is_cuda for parameter in module.parameters()):
            self._models.append(module)
            named = self._models if len(self._models) > 1 else []
            together = nn.ModuleDict({f"{type(m).__name__}_{i}": m for i, m in enumerate(named)})
            self._recorder.know_model(together if named else module)
        if module in self._models:
            self._recorder.mark("inputs", "", (tensor for tensor in tensors_in(inputs) if not tensor.requires_grad))

    def _after_module(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        if not torch.compiler.is_compiling():
            self._depth = max(self._depth - 1, 0)

    def _before_optimizer(self, *_: Any) -> None:
        self._enter("optimizer")

    def _after_optimizer(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        theirs = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        for model in self._models:
            if theirs & {id(parameter) for parameter in model.parameters()}:
                self._recorder.know_optimizer(model, optimizer)
                break
        self.end_step()


def _with_changes(events: list[dict[str, Any]], changes: list[tuple[int, str]]) -> list[dict[str, Any]]:
    """``events`` with each change where it belongs: after as many allocations and frees as there had been."""
    merged: list[dict[str, Any]] = []
    count = at = 0
    for event in events:
        counts = event["action"] in ("alloc", "free_completed")
        while counts and at < len(changes) and changes[at][0] <= count:
            merged.append({"action": "annotate", "user_metadata": changes[at][1]})
            at += 1
        merged.append(event)
        count += counts
    merged += [{"action": "annotate", "user_metadata": mark} for _, mark in changes[at:]]
    return merged

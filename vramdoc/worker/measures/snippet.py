"""A measure's code: what a user would append to the target's file, and what the worker runs in its place.

The very text that is printed is executed, with the target's globals as its own, so that it cannot promise anything
else than what was measured. It redefines functions of the target's form (see ``worker.load``) by name, and calls the
former ones::

    make_optimizer_before_fused_optimizer = make_optimizer

    def make_optimizer(model):
        optimizer = make_optimizer_before_fused_optimizer(model)
        ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.optim import Optimizer

from vramdoc.errors import MeasureError
from vramdoc.worker import load
from vramdoc.worker.training import FORM, Training

_DEFAULTS = {
    "build_model": "def build_model():\n    return model",
    "make_optimizer": "def make_optimizer(model):\n    return torch.optim.AdamW(model.parameters())",
    "place_model": "def place_model(model):\n    return model.cuda()",
    "run_backward": "def run_backward(loss):\n    loss.backward()",
    "run_optimizer": "def run_optimizer(optimizer):\n    optimizer.step()",
    "clear_gradients": "def clear_gradients(optimizer):\n    optimizer.zero_grad()",
}
"""What a target has where its file does not say: printed, so that the code stands by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """Code of one measure, which calls the former function as :func:`former` names it."""

    measure: str
    body: str  # without the line that keeps the former functions
    wraps: tuple[str, ...] = ()  # functions of the form that it redefines, calling the former ones
    sets: tuple[str, ...] = ()  # functions and numbers of the form that it defines anew
    imports: tuple[str, ...] = ("torch",)


def former(name: str, measure: str) -> str:
    """What ``name`` is called once the measure has redefined it."""
    return f"{name}_before_{measure}"


def run(training: Training, snippet: Snippet, notes: tuple[str, ...] = ()) -> None:
    """Executes the snippet in the target's file and takes over what it defined."""
    names = training.names
    missing = [name for name in snippet.wraps if name not in names]
    keep = "".join(f"{former(name, snippet.measure)} = {name}\n" for name in snippet.wraps)
    imports = "".join(f"import {name}\n" for name in snippet.imports)
    code = f"{imports}\n{keep}\n\n{snippet.body.strip()}\n" if keep else f"{imports}\n{snippet.body.strip()}\n"
    for name in (*snippet.wraps, *snippet.sets):
        names[name] = getattr(training, FORM[name])
    exec(compile(code, f"<measure {snippet.measure}>", "exec"), names)
    for name in (*snippet.wraps, *snippet.sets):
        setattr(training, FORM[name], names[name])
    defaults = "".join(f"{_DEFAULTS[name]}\n\n\n" for name in missing)
    printed = code.replace(f"{imports}\n", f"{imports}\n\n{defaults}", 1) if defaults else code
    # A measure whose parts become known one after the other runs several snippets.
    parts = [training.applied.get(snippet.measure, ""), printed]
    training.applied[snippet.measure] = "\n\n\n".join(part.strip("\n") for part in parts if part) + "\n"
    training.notes.extend(notes)


def require_plain_update(training: Training) -> None:
    """Raises :class:`MeasureError` where something else than ``optimizer.step()`` ends the step."""
    if "run_optimizer" in training.names:
        raise MeasureError("the step does not end in a plain optimizer.step()")


def on_model(training: Training, make: Callable[[nn.Module], Snippet | None]) -> None:
    """Runs what ``make`` returns for the target's model as soon as there is one, and before it is handed on."""
    build = training.build

    def built() -> nn.Module:
        model = load.check_model(build())
        training.build = lambda: model
        snippet = make(model)
        if snippet is not None:
            run(training, snippet)
        return training.build()

    training.build = built


def on_optimizer(training: Training, make: Callable[[Optimizer], Snippet]) -> None:
    """Runs what ``make`` returns for the target's optimizer as soon as there is one."""
    make_optimizer = training.make_optimizer

    def made(model: nn.Module) -> Optimizer:
        optimizer = make_optimizer(model)
        training.make_optimizer = lambda _model: optimizer
        run(training, make(optimizer))
        return training.make_optimizer(model)

    training.make_optimizer = made


def on_batch(training: Training, make: Callable[[Any, int], Snippet]) -> None:
    """Runs what ``make`` returns for the target's first batch and its size as soon as there is one."""
    make_batch = training.make_batch
    changed: list[Callable[[int], Any]] = []

    def made(batch_size: int) -> Any:
        if not changed:
            outer = training.make_batch  # another measure's, perhaps, that has called this one
            first = [make_batch(batch_size)]
            training.make_batch = lambda size: first.pop() if first else make_batch(size)
            run(training, make(first[0], batch_size))
            changed.append(training.make_batch)
            training.make_batch = outer
        return changed[0](batch_size)

    training.make_batch = made

"""Measures of the optimizer: how it steps, and which one it is."""

from __future__ import annotations

import importlib.util
from typing import Any

import torch
from torch.optim import Optimizer

from vramdoc.errors import MeasureError
from vramdoc.worker.measures.registry import measure
from vramdoc.worker.measures.snippet import Snippet, on_optimizer, require_plain_update, run
from vramdoc.worker.training import Training

_FUSED = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad)
_ADAM = (torch.optim.Adam, torch.optim.AdamW)


@measure("fused_optimizer")
def fused_optimizer(training: Training) -> None:
    """``fused=True``: one kernel updates many parameters, without temporaries."""

    def make(optimizer: Optimizer) -> Snippet:
        name = _torch_name(optimizer, _FUSED, "a fused step")
        if _all_groups(optimizer, "fused", True):
            raise MeasureError(f"{name} is fused already")
        return _rebuilt("fused_optimizer", name, "fused=True", {"fused": True, "foreach": False})

    on_optimizer(training, make)


@measure("no_foreach")
def no_foreach(training: Training) -> None:
    """``foreach=False``: parameters one after the other, so that temporaries are as large as one of them."""

    def make(optimizer: Optimizer) -> Snippet:
        name = _kind(optimizer)
        if any("foreach" not in group for group in optimizer.param_groups):
            raise MeasureError(f"{name} has no foreach step")
        if _all_groups(optimizer, "fused", True):
            raise MeasureError(f"{name} is fused: it makes no temporaries")
        if _all_groups(optimizer, "foreach", False):
            raise MeasureError(f"{name} updates its parameters one after the other already")
        body = """
def make_optimizer(model):
    optimizer = make_optimizer_before_no_foreach(model)
    for group in optimizer.param_groups:
        group["foreach"] = False  # the same as foreach=False where the optimizer is made
    return optimizer
"""
        return Snippet(measure="no_foreach", body=body, wraps=("make_optimizer",))

    on_optimizer(training, make)


@measure("zero_grad_to_none")
def zero_grad_to_none(training: Training) -> None:
    """Gradients are freed after the step instead of filled with zeros."""
    if "clear_gradients" not in training.names:

        def make(optimizer: Optimizer) -> Snippet:
            if type(optimizer).zero_grad is Optimizer.zero_grad and "zero_grad" not in vars(optimizer):
                raise MeasureError("gradients are freed after each step already: torch's default since 2.0")
            return snippet

        snippet = _zero_grad()
        on_optimizer(training, make)
        return

    def clear(optimizer: Optimizer) -> None:
        before(optimizer)
        if all(parameter.grad is None for group in optimizer.param_groups for parameter in group["params"]):
            raise MeasureError("gradients are freed after each step already")
        # Seen once, in the first step: from here on they are freed.
        training.clear = cleared
        cleared(optimizer)

    before = training.clear
    run(training, _zero_grad())
    cleared = training.clear
    training.clear = clear


def _zero_grad() -> Snippet:
    body = """
def clear_gradients(optimizer):
    optimizer.zero_grad(set_to_none=True)
"""
    return Snippet(measure="zero_grad_to_none", body=body, sets=("clear_gradients",))


@measure("optimizer_in_backward")
def optimizer_in_backward(training: Training) -> None:
    """Each parameter steps, and loses its gradient, as soon as its gradient is whole."""

    def make(optimizer: Optimizer) -> Snippet:
        name = _torch_name(optimizer, _elementwise(), "a step of each parameter by itself")
        body = f"""
def make_optimizer(model):
    optimizer = make_optimizer_before_optimizer_in_backward(model)
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            single = {name}([{{**group, "params": [parameter]}}])
            single.state = optimizer.state  # one place for all states, as state_dict() expects

            def step(parameter, single=single):
                single.step()
                parameter.grad = None

            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(step)
    return optimizer


def run_optimizer(optimizer):
    pass  # every parameter has stepped in backward
"""
        return Snippet(measure="optimizer_in_backward", body=body, wraps=("make_optimizer",), sets=("run_optimizer",))

    require_plain_update(training)
    if training.micro_batches > 1:
        raise MeasureError("gradients are accumulated over micro-batches: a step inside backward would come too early")
    on_optimizer(training, make)


@measure("adafactor")
def adafactor(training: Training) -> None:
    """torch.optim.Adafactor: one row and one column of state for each matrix."""

    def make(optimizer: Optimizer) -> Snippet:
        if isinstance(optimizer, torch.optim.Adafactor):
            raise MeasureError("the optimizer is Adafactor already")
        if isinstance(optimizer, torch.optim.SGD) and not any(group["momentum"] for group in optimizer.param_groups):
            raise MeasureError("SGD without momentum keeps no state: there is nothing to save")
        body = """
def make_optimizer(model):
    optimizer = make_optimizer_before_adafactor(model)
    groups = [{"params": group["params"]} for group in optimizer.param_groups]
    return torch.optim.Adafactor(groups, lr=0.01)  # find the learning rate anew
"""
        return Snippet(measure="adafactor", body=body, wraps=("make_optimizer",))

    on_optimizer(training, make)


@measure("sgd_momentum")
def sgd_momentum(training: Training) -> None:
    """torch.optim.SGD with one momentum for each parameter."""

    def make(optimizer: Optimizer) -> Snippet:
        if isinstance(optimizer, torch.optim.SGD):
            raise MeasureError("the optimizer is SGD already")
        body = """
def make_optimizer(model):
    optimizer = make_optimizer_before_sgd_momentum(model)
    groups = [{"params": group["params"]} for group in optimizer.param_groups]
    return torch.optim.SGD(groups, lr=0.01, momentum=0.9)  # find the learning rate anew
"""
        return Snippet(measure="sgd_momentum", body=body, wraps=("make_optimizer",))

    on_optimizer(training, make)


@measure("adam_8bit")
def adam_8bit(training: Training) -> None:
    """Adam whose two moments take a byte each, from bitsandbytes or torchao."""
    package = next((name for name in ("bitsandbytes", "torchao") if importlib.util.find_spec(name)), None)
    if package is None:
        raise MeasureError("needs bitsandbytes or torchao", hint="pip install bitsandbytes")

    def make(optimizer: Optimizer) -> Snippet:
        name = _torch_name(optimizer, _ADAM, "an 8-bit variant").rpartition(".")[2]
        body = f"""
def make_optimizer(model):
    optimizer = make_optimizer_before_adam_8bit(model)
    taken = ("params", "lr", "betas", "eps", "weight_decay")
    groups = [{{name: group[name] for name in taken}} for group in optimizer.param_groups]
    return {package}.optim.{name}8bit(groups)
"""
        imports = (package,) if package == "bitsandbytes" else ("torchao.optim",)
        return Snippet(measure="adam_8bit", body=body, wraps=("make_optimizer",), imports=("torch", *imports))

    on_optimizer(training, make)


def _rebuilt(name: str, optimizer: str, argument: str, overrides: dict[str, Any]) -> Snippet:
    """The optimizer made once more with another argument: its class checks whether it may be given."""
    changed = ", ".join(f'"{key}": {value}' for key, value in overrides.items())
    body = f"""
def make_optimizer(model):
    optimizer = make_optimizer_before_{name}(model)
    groups = [{{**group, {changed}}} for group in optimizer.param_groups]
    return {optimizer}(groups, {argument})
"""
    return Snippet(measure=name, body=body, wraps=("make_optimizer",))


def _all_groups(optimizer: Optimizer, key: str, value: object) -> bool:
    return all(group.get(key) is value for group in optimizer.param_groups)


def _torch_name(optimizer: Optimizer, kinds: tuple[type[Optimizer], ...], what: str) -> str:
    """``torch.optim.AdamW``; raises :class:`MeasureError` where it is none of ``kinds``. A subclass may take other
    arguments, so it does not count."""
    if type(optimizer) not in kinds:
        raise MeasureError(f"{_kind(optimizer)} has not {what} that is known")
    return f"torch.optim.{type(optimizer).__name__}"


def _elementwise() -> tuple[type[Optimizer], ...]:
    """torch's optimizers that step each parameter by itself, with or without others."""
    names = (
        "Adam", "AdamW", "SGD", "Adagrad", "Adadelta", "Adafactor", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop",
        "ASGD", "Muon",
    )  # fmt: skip
    return tuple(getattr(torch.optim, name) for name in names if hasattr(torch.optim, name))


def _kind(optimizer: Optimizer) -> str:
    return f"{type(optimizer).__module__.partition('.')[0]}'s {type(optimizer).__name__}"

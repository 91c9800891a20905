"""Loads the user's file and finds in it what a measurement needs."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from vramdoc.errors import TargetError
from vramdoc.worker import userland

MODULE_NAME = "vramdoc_target"
STEP_FUNCTIONS = ("place_model", "run_backward", "run_optimizer", "clear_gradients")
"""Parts of a step that a target may define where its loop differs: ``place_model(model)`` returns the model on the
GPU, ``run_backward(loss)``, ``run_optimizer(optimizer)`` and ``clear_gradients(optimizer)`` return nothing.
``MICRO_BATCHES`` says in how many parts a batch is run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The functions of a target; each is the user's own or the default of the design."""

    names: dict[str, Any]  # the globals of the target's file

    build_model: Callable[[], nn.Module]
    make_batch: Callable[[int], Any]
    compute_loss: Callable[[nn.Module, Any], Tensor]
    make_optimizer: Callable[[nn.Module], torch.optim.Optimizer]
    batch_size: int
    optional: dict[str, Any]  # the parts of a step that the file defines too, by name


def load(path: Path) -> Target:
    """Runs the file at ``path`` as a module. Raises :class:`TargetError`."""
    module = _run(path)
    if hasattr(module, "build_model"):
        build_model = _function(module, "build_model", path)
    elif isinstance(getattr(module, "model", None), nn.Module):
        model: nn.Module = module.model

        def build_model() -> nn.Module:
            return model
    else:
        raise TargetError(
            f"{path.name} has no model",
            hint="define `def build_model() -> nn.Module` or a module-level `model`",
        )
    if not hasattr(module, "make_batch"):
        raise TargetError(
            f"{path.name} has no make_batch",
            hint="define `def make_batch(batch_size: int)` that returns a batch of tensors",
        )
    return Target(
        names=vars(module),
        build_model=build_model,
        make_batch=_function(module, "make_batch", path),
        compute_loss=_function(module, "compute_loss", path) if hasattr(module, "compute_loss") else default_loss,
        make_optimizer=(
            _function(module, "make_optimizer", path) if hasattr(module, "make_optimizer") else default_optimizer
        ),
        batch_size=_count(module, "BATCH_SIZE", path),
        optional={
            **{name: _function(module, name, path) for name in STEP_FUNCTIONS if hasattr(module, name)},
            "MICRO_BATCHES": _count(module, "MICRO_BATCHES", path),
        },
    )


def _run(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE_NAME] = module
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path)]
    userland.call(f"loading {path.name}", spec.loader.exec_module, module)
    return module


def _function(module: ModuleType, name: str, path: Path) -> Callable[..., Any]:
    value = getattr(module, name)
    if not callable(value):
        raise TargetError(f"{name} in {path.name} is a {type(value).__name__}, not a function")
    function: Callable[..., Any] = value
    return function


def _count(module: ModuleType, name: str, path: Path) -> int:
    value = getattr(module, name, 1)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise TargetError(f"{name} in {path.name} is {value!r}", hint="make it a whole number of at least 1")
    return value


def default_loss(model: nn.Module, batch: Any) -> Tensor:
    """The model called on the batch; its ``loss`` where it has one, else the sum of its float outputs."""
    output = call_model(model, batch)
    loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(loss, Tensor):
        return loss
    sums = [t.sum() for t in torch.utils._pytree.tree_leaves(output) if isinstance(t, Tensor) and t.is_floating_point()]
    if not sums:
        raise TypeError("the model's output has neither a loss nor float tensors; define compute_loss(model, batch)")
    return torch.stack([s.float() for s in sums]).sum() if len(sums) > 1 else sums[0]


def call_model(model: nn.Module, batch: Any) -> Any:
    """A mapping is passed as keywords, a tuple or list as positions, anything else as one argument."""
    if isinstance(batch, dict) or (hasattr(batch, "keys") and hasattr(batch, "__getitem__")):
        return model(**batch)
    if isinstance(batch, (tuple, list)):
        return model(*batch)
    return model(batch)


def default_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """AdamW over all parameters, as the design says."""
    return torch.optim.AdamW(model.parameters())


def check_model(model: Any) -> nn.Module:
    """``model`` if it can be trained; raises :class:`TargetError`."""
    if inspect.isawaitable(model) or not isinstance(model, nn.Module):
        raise TargetError(
            f"build_model() returned {_described(model)}, not a torch.nn.Module",
            hint="return the model from it",
        )
    return model


def check_loss(loss: Any) -> Tensor:
    """``loss`` if backward can start from it; raises :class:`TargetError`."""
    if not isinstance(loss, Tensor):
        raise TargetError(f"compute_loss() returned {_described(loss)}, not a tensor", hint="return the loss tensor")
    if loss.numel() != 1:
        raise TargetError(
            f"compute_loss() returned a tensor of shape {tuple(loss.shape)}", hint="reduce it: loss.mean()"
        )
    return loss


def _described(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"

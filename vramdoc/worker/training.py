"""The training loop of a target as a value: its parts are functions, which measures wrap or replace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vramdoc.worker import load


def place(model: nn.Module) -> nn.Module:
    """``model`` moved to the GPU, as people do."""
    return model.cuda()


def backward(loss: Tensor) -> None:
    """Gradients of ``loss``."""
    loss.backward()


def update(optimizer: Optimizer) -> None:
    """One step of the optimizer."""
    optimizer.step()


def clear(optimizer: Optimizer) -> None:
    """Gradients away, as the optimizer does it by itself."""
    optimizer.zero_grad()


FORM = {
    "build_model": "build",
    "make_batch": "make_batch",
    "compute_loss": "compute_loss",
    "make_optimizer": "make_optimizer",
    "place_model": "place",
    "run_backward": "backward",
    "run_optimizer": "update",
    "clear_gradients": "clear",
    "BATCH_SIZE": "batch_size",
    "MICRO_BATCHES": "micro_batches",
}
"""What a target's file may define, and the part of :class:`Training` that it is."""


@dataclass(slots=True, kw_only=True)
class Training:
    """What one step is made of. A measure changes it before anything has been built."""

    build: Callable[[], nn.Module]  # on the host
    make_batch: Callable[[int], Any]
    batch_size: int
    compute_loss: Callable[[nn.Module, Any], Tensor]
    make_optimizer: Callable[[nn.Module], Optimizer]
    place: Callable[[nn.Module], nn.Module] = place
    backward: Callable[[Tensor], None] = backward
    update: Callable[[Optimizer], None] = update
    clear: Callable[[Optimizer], None] = clear
    micro_batches: int = 1  # a step's batch is split into so many, each with a forward and a backward
    notes: list[str] = field(default_factory=list)  # what a person should know of the measures taken
    null: bool = False  # on a null GPU: no value that the host computes matters
    names: dict[str, Any] = field(default_factory=dict)  # the globals of the target's file
    applied: dict[str, str] = field(default_factory=dict)  # measure -> the code that it ran there

    @classmethod
    def of(cls, target: load.Target, batch_size: int | None, *, null: bool) -> Training:
        """The plain loop of ``target``."""
        return cls(
            **{FORM[name]: value for name, value in target.optional.items()},
            names=target.names,
            null=null,
            build=target.build_model,
            make_batch=target.make_batch,
            batch_size=batch_size or target.batch_size,
            compute_loss=target.compute_loss,
            make_optimizer=target.make_optimizer,
        )


def to_device(batch: Any) -> Any:
    """The batch with every tensor on the GPU; objects that move themselves (``.to``) do so."""
    if not isinstance(batch, Tensor) and hasattr(batch, "to") and callable(batch.to):
        return batch.to("cuda")
    return torch.utils._pytree.tree_map(lambda v: v.cuda() if isinstance(v, Tensor) else v, batch)


def split(batch: Any, parts: int) -> list[Any]:
    """``batch`` in ``parts`` along the first dimension of its tensors; what is no tensor goes to each part."""
    if parts == 1:
        return [batch]
    leaves, structure = torch.utils._pytree.tree_flatten(batch)
    pieces = [
        leaf.tensor_split(parts) if isinstance(leaf, Tensor) and leaf.dim() else [leaf] * parts for leaf in leaves
    ]
    return [torch.utils._pytree.tree_unflatten([piece[i] for piece in pieces], structure) for i in range(parts)]

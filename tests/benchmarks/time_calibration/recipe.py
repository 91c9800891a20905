"""What one side of a published pair is: a model with its batch, and how the step is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

MODELS: dict[str, Callable[..., Workload]] = {}
"""By the name before the slash of a recipe's model."""


@dataclass(slots=True, kw_only=True)
class Workload:
    """A model on the GPU and what one step computes with it."""

    model: nn.Module
    loss: Callable[[nn.Module], Tensor]  # of one micro-batch, which it holds already


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One run to record."""

    model: str  # "timm/resnet50", "bert-large/qa"
    gpu: str  # short name in the tables: it decides which kernels torch takes
    batch: int
    size: int = 0  # tokens, or edge of an image
    precision: str = "fp32"  # "fp32", "tf32", "amp-fp16", "amp-bf16", "bf16" or "fp16" (all of it in that type)
    optimizer: str = "none"  # "none", "sgd", "adam-loop", "adam-foreach", "adam-fused", "adafactor"
    channels_last: bool = False
    checkpoint: str = "none"  # "none", "full" (every block), "selective" (products and attention are kept)
    options: tuple[tuple[str, Any], ...] = ()  # of the model

    @property
    def key(self) -> str:
        """A name that tells it from every other."""
        parts = [self.model, self.gpu, f"b{self.batch}", f"s{self.size}", self.precision, self.optimizer]
        parts += ["channels-last"] * self.channels_last + [self.checkpoint] * (self.checkpoint != "none")
        return " ".join([*parts, *(f"{name}={value}" for name, value in self.options)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A recipe on so many GPUs."""

    recipe: Recipe
    gpus: int = 1
    per_machine: int = 8
    strategy: str = "ddp"  # what joins several: "ddp", "fsdp" (ZeRO-3), "fsdp-keep" (ZeRO-2)
    blocks: int = 1  # units of FSDP
    accumulate: int = 1  # micro-batches a step; gradients are reduced after the last
    samples: float = 1.0  # units of throughput that one step of one GPU makes: ratios are of time a unit
    link: str = ""  # between the GPUs of a machine, where it is not the GPU's own
    node_link: str = "ethernet-400"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two sides of one published pair."""

    before: Side
    after: Side
    note: str = ""  # where the recording departs from what was published


@dataclass(slots=True)
class Pairs:
    """Every pair that is reproduced, by its name in timings.json."""

    by_name: dict[str, Pair] = field(default_factory=dict)

    def add(self, name: str, before: Side | Recipe, after: Side | Recipe, note: str = "") -> None:
        """Adds a pair; a recipe alone is a side of one GPU."""
        sides = [side if isinstance(side, Side) else Side(recipe=side, samples=side.batch) for side in (before, after)]
        self.by_name[name] = Pair(before=sides[0], after=sides[1], note=note)


def model(name: str) -> Callable[[Callable[..., Workload]], Callable[..., Workload]]:
    """Registers a builder: called with the rest of the name, the recipe and its options, on the null GPU."""

    def register(build: Callable[..., Workload]) -> Callable[..., Workload]:
        MODELS[name] = build
        return build

    return register


def token_ids(batch: int, length: int, vocabulary: int) -> Tensor:
    """Token ids on the GPU."""
    return torch.randint(vocabulary, (batch, length))

"""What a measure is: a change to a training loop as data, apart from the worker's code that applies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tier = Literal["free", "speed", "numerics", "training", "sharding"]
"""How far a change goes: ``free`` same result and no slower, ``speed`` same result but slower, ``numerics`` other
rounding, ``training`` another training, ``sharding`` the same training over several GPUs."""

Axis = Literal[
    "allocator",
    "attention",
    "batch",
    "checkpointing",
    "gradients",
    "kernels",
    "layout",
    "loss",
    "micro_batch",
    "offload",
    "optimizer",
    "precision",
    "sharding",
    "trainable",
    "update",
]
"""What a change decides. A plan takes at most one measure of an axis."""

Value = int | float | str | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """How far a measure goes: one option of its ``Choice``."""

    name: str
    meaning: str  # with its unit
    default: Value | None = None  # None: the worker decides (all blocks, the repeated class it finds)
    lowest: int | None = None  # of a whole number that is searched
    highest: int | Literal["blocks", "batch"] | None = None  # or as many as there are repeated blocks, samples
    values: tuple[Value, ...] = ()  # where only some are worth a try


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One change to a training loop. The code that a user writes comes with its measurement, for the very target."""

    name: str  # of the choice, and of the worker's function
    title: str  # a few words for a table
    tier: Tier
    axis: Axis
    stage: int  # measures are applied from low to high: what changes the model's modules before what wraps them
    touches: str  # what of the loop it changes
    applies: str  # when it does, in words
    change: str  # what to do to a loop of one's own, one sentence
    cost: str  # in time, host memory or communication
    risks: tuple[str, ...] = ()  # what could go wrong
    excludes: frozenset[str] = frozenset()  # measures of other axes that it cannot be combined with
    needs: frozenset[str] = frozenset()  # it changes one of these, which has to be taken too; none: it stands alone
    options: tuple[Option, ...] = ()
    packages: tuple[str, ...] = ()  # any one of these has to be installed


BLOCK = Option(name="block", meaning="class name of the repeated blocks; found by itself where not given")
BLOCKS = Option(
    name="blocks",
    meaning="how many of the repeated blocks, the first ones; all where not given",
    lowest=1,
    highest="blocks",
)
WHICH = Option(name="which", meaning='the blocks by number, as "0,2,5-7"; instead of `blocks`')

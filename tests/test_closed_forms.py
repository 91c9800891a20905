"""Stacks of Linear layers, held to sums that anyone can do by hand.

Every figure is computed here from the shapes and two rules of PyTorch's allocator. A request is rounded up
to 512 bytes. One of more than 1 MiB takes a whole free block where less than 1 MiB of it would be left, and
a new block from 10 MiB upwards is a multiple of 2 MiB; so a tensor of 15.5 MiB takes 16.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MIB = 1024**2
FLOAT = 4
STACKS = {
    "small": [100, 300, 201, 50],  # every tensor is rounded, none is over 1 MiB
    "whole": [2048, 2048, 2048],  # weights of 16 MiB: nothing to round
    "unsplit": [2000, 2032, 2000, 2032],  # weights of 15.5 MiB: each takes a block of 16
}
OPTIMIZERS = ("sgd", "momentum", "adam")
BATCHES = (1, 2, 4)
CASES = list(itertools.product(STACKS, OPTIMIZERS, BATCHES))
WORKSPACE = (2 * 4096 + 8 * 16) * 1024  # torch's default for cuBLAS before Hopper, ":4096:2:16:8" in KiB


def taken(floats: int) -> int:
    """What a tensor of so many floats takes from the allocator."""
    rounded = -(-floats * FLOAT // 512) * 512
    if rounded < 10 * MIB:
        return rounded
    segment = -(-rounded // (2 * MIB)) * 2 * MIB
    return segment if segment - rounded <= MIB else rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What one case must take, in bytes."""

    parameters: int  # as much again for the gradients and for each state of the optimizer
    states: int
    temporaries: int  # of the optimizer's step
    batch: int  # input and target
    first_output: int  # of the first layer; its gradient is as large
    loss: int


def sums(widths: list[int], optimizer: str, batch: int) -> Sums:
    """The sums for a stack of ``widths``; weight and bias of each layer are tensors of their own."""
    layers = itertools.pairwise(widths)
    parameters = sum(taken(inputs * outputs) + taken(outputs) for inputs, outputs in layers)
    return Sums(
        parameters=parameters,
        # Momentum keeps one tensor a parameter, Adam two; Adam's step counts stay on the host.
        states={"sgd": 0, "momentum": 1, "adam": 2}[optimizer] * parameters,
        # Adam's foreach step takes the square roots of all second moments at once; SGD works in place.
        temporaries=parameters if optimizer == "adam" else 0,
        batch=taken(batch * widths[0]) + taken(batch * widths[-1]),
        first_output=taken(batch * widths[1]),
        # Torch's mse_loss sizes its result like the output before it shrinks it to a scalar; the storage stays.
        loss=taken(batch * widths[-1]),
    )


def expected(case: Sums) -> dict[str, int]:
    """The figures of the second step, in which the states exist and the gradients come anew."""
    standing = case.parameters + case.states + case.batch
    after_backward = standing + case.parameters + case.loss
    return {
        "model": case.parameters,
        "batch": case.batch,
        # The backward peaks at its end, in the first layer: every gradient is there, beside them the
        # gradient of this layer's output, and the 1.0 that started it. Of the saved inputs only the batch is left.
        "backward_peak": after_backward + case.first_output + taken(1),
        "after_backward": after_backward,
        "optimizer_peak": after_backward + case.temporaries,
        "after_step": standing,
    }


def test_closed_forms_on_raw_torch(on_null_gpu: Callable[..., Any]) -> None:
    """Sums by hand need no measurement to be right: the null GPU must meet each to the byte."""
    cases = [[STACKS[stack], optimizer, batch] for stack, optimizer, batch in CASES]
    result = on_null_gpu(f"from tests.closed_forms_steps import measure_all\nemit(measure_all({cases!r}))\n", "a100-40")
    assert result["workspaces"] == 2 * WORKSPACE  # one for the main thread's handle, one for autograd's
    found = dict(zip(CASES, result["found"], strict=True))
    assert found == {
        (stack, optimizer, batch): expected(sums(STACKS[stack], optimizer, batch)) for stack, optimizer, batch in CASES
    }

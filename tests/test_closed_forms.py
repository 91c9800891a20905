"""Stacks of Linear layers, held to sums that anyone can do by hand.

Every figure is computed here from the shapes and two rules of PyTorch's allocator. A request is rounded up
to 512 bytes. One of more than 1 MiB takes a whole free block where less than 1 MiB of it would be left, and
a new block from 10 MiB upwards is a multiple of 2 MiB; so a tensor of 15.5 MiB takes 16.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import vramdoc

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
REPORTED = [("small", "adam", 1), ("small", "momentum", 4), ("whole", "adam", 4), ("unsplit", "sgd", 2)]
# One for the main thread's handle, one for that of autograd's; torch's default for cuBLAS before Hopper is
# ":4096:2:16:8", sizes in KiB.
WORKSPACES = 2 * (2 * 4096 + 8 * 16) * 1024
TARGET = """
import itertools
import torch
from torch import nn
from tests.closed_forms_steps import OPTIMIZERS

WIDTHS = {widths}

def build_model():
    return nn.Sequential(*(nn.Linear(inputs, outputs) for inputs, outputs in itertools.pairwise(WIDTHS)))

def make_batch(batch_size):
    return torch.randn(batch_size, WIDTHS[0]), torch.randn(batch_size, WIDTHS[-1])

def compute_loss(model, batch):
    x, target = batch
    return nn.functional.mse_loss(model(x), target)

def make_optimizer(model):
    return OPTIMIZERS["{optimizer}"](model.parameters())
"""


def taken(floats: int) -> int:
    """What a tensor of so many floats takes from the allocator."""
    rounded = -(-floats * FLOAT // 512) * 512
    if rounded < 10 * MIB:
        return rounded
    segment = -(-rounded // (2 * MIB)) * 2 * MIB
    return segment if segment - rounded <= MIB else rounded


def requested(floats: int) -> int:
    """What a tensor of so many floats asks for."""
    return floats * FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The parts of one case, in bytes."""

    parameters: int  # as much again for the gradients and for each state of the optimizer
    states: int
    temporaries: int  # of the optimizer's step
    batch: int  # input and target
    first_output: int  # of the first layer; its gradient is as large
    loss: int
    one: int  # the gradient that starts the backward


def sums(case: tuple[str, str, int], size: Callable[[int], int] = taken) -> Sums:
    """The sums for a stack, an optimizer and a batch size; weight and bias of each layer are tensors of their own."""
    stack, optimizer, batch = case
    widths = STACKS[stack]
    layers = itertools.pairwise(widths)
    parameters = sum(size(inputs * outputs) + size(outputs) for inputs, outputs in layers)
    return Sums(
        parameters=parameters,
        # Momentum keeps one tensor a parameter, Adam two; Adam's step counts stay on the host.
        states={"sgd": 0, "momentum": 1, "adam": 2}[optimizer] * parameters,
        # Adam's foreach step takes the square roots of all second moments at once; SGD works in place.
        temporaries=parameters if optimizer == "adam" else 0,
        batch=size(batch * widths[0]) + size(batch * widths[-1]),
        first_output=size(batch * widths[1]),
        # Torch's mse_loss sizes its result like the output before it shrinks it to a scalar; the storage stays.
        loss=size(batch * widths[-1]),
        one=size(1),
    )


def moments(case: Sums) -> dict[str, int]:
    """The figures of the second step, in which the states exist and the gradients come anew."""
    standing = case.parameters + case.states + case.batch
    after_backward = standing + case.parameters + case.loss
    return {
        "model": case.parameters,
        "batch": case.batch,
        # The backward peaks at its end, in the first layer: every gradient is there, beside them the
        # gradient of this layer's output, and the 1.0 that started it. Of the saved inputs only the batch is left.
        "backward_peak": after_backward + case.first_output + case.one,
        "after_backward": after_backward,
        "optimizer_peak": after_backward + case.temporaries,
        "after_step": standing,
    }


def test_raw_torch_meets_the_sums(on_null_gpu: Callable[..., Any]) -> None:
    """Sums by hand need no measurement to be right: the null GPU must meet each to the byte."""
    cases = [[STACKS[stack], optimizer, batch] for stack, optimizer, batch in CASES]
    result = on_null_gpu(f"from tests.closed_forms_steps import measure_all\nemit(measure_all({cases!r}))\n", "a100-40")
    assert result["workspaces"] == WORKSPACES
    found = dict(zip(CASES, result["found"], strict=True))
    assert found == {case: moments(sums(case)) for case in CASES}


@pytest.mark.parametrize("case", REPORTED, ids=lambda case: "-".join(map(str, case)))
def test_a_report_meets_the_sums(case: tuple[str, str, int], tmp_path: Path) -> None:
    """What a report says of each category must be the sum by hand, and no byte may be left unexplained."""
    stack, optimizer, batch = case
    target = tmp_path / "stack.py"
    target.write_text(TARGET.format(widths=STACKS[stack], optimizer=optimizer))
    report = vramdoc.profile(target, gpu="a100-40", batch_size=batch)
    parts, blocks = sums(case, requested), sums(case)
    phase = "optimizer" if optimizer == "adam" else "backward"
    peak = moments(blocks)[f"{phase}_peak"]
    assert report.peak.allocated_bytes == peak + WORKSPACES
    assert report.peak.phase == phase
    of_the_step = parts.loss + (parts.first_output + parts.one if phase == "backward" else 0)
    categories = dict(report.categories)
    assert categories.pop("activations") + categories.pop("temporaries") == of_the_step
    assert {name: size for name, size in categories.items() if size} == {
        name: size
        for name, size in {
            "parameters": parts.parameters,
            "gradients": parts.parameters,
            "optimizer_state": parts.states,
            "optimizer_temporaries": parts.temporaries,
            "inputs": parts.batch,
            "workspace": WORKSPACES,
            "rounding": peak - moments(parts)[f"{phase}_peak"],
        }.items()
        if size
    }
    assert report.phases[-1].end_bytes == blocks.parameters + blocks.states + WORKSPACES  # the batch is gone
    assert report.growth_bytes_per_step == 0

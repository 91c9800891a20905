"""Steps of stacks of Linear layers, read off at four moments. test_closed_forms.py imports it there."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import torch
from torch import nn

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters),
}


def measure(widths: list[int], optimizer_name: str, batch: int) -> dict[str, int]:
    """Bytes allocated above what the process held before, at each moment of the second step."""
    gc.collect()
    torch.cuda.empty_cache()
    held = torch.cuda.memory_allocated()
    layers = [nn.Linear(inputs, outputs) for inputs, outputs in itertools.pairwise(widths)]
    model = nn.Sequential(*layers).cuda()
    found = {"model": torch.cuda.memory_allocated() - held}
    x, target = torch.randn(batch, widths[0]).cuda(), torch.randn(batch, widths[-1]).cuda()
    found["batch"] = torch.cuda.memory_allocated() - held - found["model"]
    optimizer = OPTIMIZERS[optimizer_name](model.parameters())
    for _ in range(2):
        torch.cuda.reset_peak_memory_stats()
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        found["backward_peak"] = torch.cuda.max_memory_allocated() - held
        found["after_backward"] = torch.cuda.memory_allocated() - held
        torch.cuda.reset_peak_memory_stats()
        optimizer.step()
        found["optimizer_peak"] = torch.cuda.max_memory_allocated() - held
        optimizer.zero_grad()
        del loss
    found["after_step"] = torch.cuda.memory_allocated() - held
    return found


def measure_all(cases: list[list[Any]]) -> dict[str, Any]:
    """All cases, after a first one that leaves the workspaces behind, and what these are."""
    measure([8, 8], "sgd", 2)
    gc.collect()
    return {"workspaces": torch.cuda.memory_allocated(), "found": [measure(*case) for case in cases]}

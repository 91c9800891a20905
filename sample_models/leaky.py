"""A classifier that grows at every step: it keeps its losses and outputs for the log, each with its graph.

The cure is the usual one: keep ``loss.item()``, and ``logits.detach().cpu()`` where the outputs are needed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

FEATURES, WIDTH, CLASSES = 1024, 4096, 1000
BATCH_SIZE = 2048

history: list[tuple[Tensor, Tensor]] = []  # the leak: loss and outputs of every step


def build_model() -> nn.Module:
    return nn.Sequential(
        nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES)
    )


def make_batch(batch_size: int) -> tuple[Tensor, Tensor]:
    return torch.randn(batch_size, FEATURES), torch.randint(CLASSES, (batch_size,))


def compute_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    features, labels = batch
    logits = model(features)
    loss = nn.functional.cross_entropy(logits, labels)
    history.append((loss, logits))
    return loss


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=1e-3)

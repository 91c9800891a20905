"""Single operations of ops.json on whatever GPU the process has. test_ops.py imports it there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

ROUNDS = 10


class SwiGLU(nn.Module):
    """The gated MLP of Llama."""

    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, intermediate, bias=False)
        self.up = nn.Linear(hidden, intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


def operation(run: dict[str, Any]) -> Callable[[], Tensor]:
    """The forward of one round, over inputs that live as long as it does."""
    like = {"device": "cuda", "dtype": getattr(torch, run["dtype"])}
    if run["op"] == "cross_entropy":
        rows, vocabulary = run["rows"], run["vocabulary"]
        logits = torch.randn(rows, vocabulary, requires_grad=True, **like)
        labels = torch.randint(vocabulary, (rows, 1), device="cuda").squeeze(1)
        loss = nn.CrossEntropyLoss()
        return lambda: loss(logits, labels)
    if run["op"] == "swiglu_mlp":
        x = torch.randn(run["batch"], run["tokens"], run["hidden"], requires_grad=True, **like)
        mlp = SwiGLU(run["hidden"], run["intermediate"]).to(**like)
        return lambda: mlp(x)
    x = torch.randn(run["rows"], run["features"], requires_grad=True, **like)
    norm = nn.LayerNorm(run["features"], eps=run["eps"]).to(**like)
    return lambda: norm(x)


def one_round(forward: Callable[[], Tensor]) -> None:
    """Forward and backward; the graph that ``retain_graph`` keeps dies with the output, at the return."""
    output = forward()
    output.backward(torch.randn_like(output), retain_graph=True)


def peak(run: dict[str, Any]) -> int:
    """Bytes allocated at the highest moment of all rounds."""
    forward = operation(run)
    torch.cuda.reset_peak_memory_stats()
    for _ in range(ROUNDS):
        one_round(forward)
    return torch.cuda.max_memory_allocated()

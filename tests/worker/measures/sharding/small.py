"""A target: a small transformer, some of whose sizes no world divides evenly, with a plan of tensor parallelism."""

from __future__ import annotations

import torch
from torch import Tensor, nn

VOCABULARY, WIDTH, HIDDEN, HEADS, LAYERS = 101, 48, 132, 4, 3
BATCH_SIZE = 64
TENSOR_PARALLEL_PLAN = {
    "blocks.*.query": "colwise",
    "blocks.*.key": "colwise",
    "blocks.*.value": "colwise",
    "blocks.*.out": "rowwise",
    "blocks.*.up": "colwise",
    "blocks.*.down": "rowwise",
}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm(x)
        query, key, value = (
            projection(normed).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        out: Tensor = x + self.down(nn.functional.gelu(self.up(x)))
        return out


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(x)
        return logits


def build_model() -> nn.Module:
    return Transformer()


def make_batch(batch_size: int) -> Tensor:
    return torch.randint(VOCABULARY, (batch_size, 64))


def compute_loss(model: nn.Module, tokens: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())

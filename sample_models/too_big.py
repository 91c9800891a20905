"""GPT-2 large (774M) on 16 sequences of 1024 tokens: does not fit a 40 GB A100.

It wants 47 GiB reserved, 8.3 GiB more than is left beside the context. Checkpointing every block brings that
down to 23.5 GiB; 12 sequences at a time fit too, with 1 GiB to spare.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH = 50257, 1024, 36, 20, 1280
BATCH_SIZE = 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.attention_out = nn.Linear(WIDTH, WIDTH)
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        heads = self.query_key_value(self.attention_norm(x)).unflatten(-1, (3, HEADS, -1))
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # each: batch, heads, tokens, width of a head
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_norm(x))


class GPT2Large(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x)))


def build_model() -> nn.Module:
    return GPT2Large()


def make_batch(batch_size: int) -> Tensor:
    return torch.randint(VOCABULARY, (batch_size, CONTEXT + 1))


def compute_loss(model: nn.Module, ids: Tensor) -> Tensor:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(ids[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=3e-4)

"""Llama 3 8B, every weight trained in bf16 with AdamW, one sequence of 4096 tokens.

Grouped-query attention, rotary positions, RMSNorm, SwiGLU. Weights, gradients and AdamW's two moments are
8 bytes a parameter, 59.8 GiB; the optimizer's foreach step takes 15 GiB more for a moment, and makes the peak.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

VOCABULARY, LAYERS, WIDTH, HIDDEN = 128256, 32, 4096, 14336
HEADS, KEY_VALUE_HEADS, HEAD_WIDTH = 32, 8, 128
TOKENS = 4096
BATCH_SIZE = 1


def rotary_angles(tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every position's angles: tokens x HEAD_WIDTH / 2."""
    frequencies = 500_000.0 ** (-torch.arange(0, HEAD_WIDTH, 2, device=device) / HEAD_WIDTH)
    angles = torch.outer(torch.arange(tokens, device=device), frequencies)
    return angles.cos().bfloat16(), angles.sin().bfloat16()


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, HEADS * HEAD_WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, KEY_VALUE_HEADS * HEAD_WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, KEY_VALUE_HEADS * HEAD_WIDTH, bias=False)
        self.out = nn.Linear(HEADS * HEAD_WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        query, key, value = (
            projection(x).unflatten(-1, (-1, HEAD_WIDTH)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.attention = Attention()
        self.mlp_norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.mlp = SwiGLU()

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cosine, sine)
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        cosine, sine = rotary_angles(ids.shape[1], ids.device)
        for block in self.blocks:
            x = block(x, cosine, sine)
        return self.head(self.norm(x))


def build_model() -> nn.Module:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        return Llama()
    finally:
        torch.set_default_dtype(default)


def make_batch(batch_size: int) -> Tensor:
    return torch.randint(VOCABULARY, (batch_size, TOKENS + 1))


def compute_loss(model: nn.Module, ids: Tensor) -> Tensor:
    logits = model(ids[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.95))

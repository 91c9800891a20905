"""ViT-B/16 (86.6M) on ImageNet: 64 images of 224 x 224 in 16 x 16 patches, bf16 autocast, AdamW."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SIDE, PATCH, LAYERS, HEADS, WIDTH = 224, 16, 12, 12, 768
CLASSES = 1000
AUTOCAST = True  # False: everything in fp32
BATCH_SIZE = 64


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.attention_out = nn.Linear(WIDTH, WIDTH)
        self.mlp_norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        heads = self.query_key_value(self.attention_norm(x)).unflatten(-1, (3, HEADS, -1))
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # each: batch, heads, patches, width of a head
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.attention_out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_norm(x))


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        patches = (SIDE // PATCH) ** 2
        self.patch = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.class_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.positions = nn.Parameter(torch.zeros(1, patches + 1, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, CLASSES)
        nn.init.trunc_normal_(self.positions, std=0.02)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.class_token.expand(len(images), -1, -1), patches), dim=1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


def build_model() -> nn.Module:
    return VisionTransformer()


def make_batch(batch_size: int) -> tuple[Tensor, Tensor]:
    return torch.randn(batch_size, 3, SIDE, SIDE), torch.randint(CLASSES, (batch_size,))


def compute_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    images, labels = batch
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=AUTOCAST):
        return nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.3)

"""Transformer-XL: attention over the segment and a memory of the last one, with relative positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.benchmarks.time_calibration.recipe import Recipe, Workload, model, token_ids

_VOCABULARY = 267735
_TAILS = ((20000, 0.08), (160000, 0.08), (67735, 0.01))
"""Words in each cluster of the adaptive softmax after the first 20,000, and the share of tokens that are among them."""
_SIZES = {"base": (16, 512, 8, 2048, 0.1), "large": (18, 1024, 16, 4096, 0.2)}
"""Layers, width, heads, width of the feed-forward, dropout."""


class Layer(nn.Module):
    """Relative attention and a feed-forward, each added to what came in and normalised after."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.relative = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.content_bias, self.position_bias = (nn.Parameter(torch.zeros(heads, width // heads)) for _ in range(2))
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(
            *(nn.Linear(width, inner), nn.ReLU(inplace=True), nn.Dropout(dropout), nn.Linear(inner, width)),
            nn.Dropout(dropout),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, memory: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        query, key, value = (
            part.unflatten(-1, (self.heads, self.size))
            for part in self.query_key_value(torch.cat([memory, x], 1)).chunk(3, -1)
        )
        query = query[:, -x.shape[1] :]
        where = self.relative(positions).unflatten(-1, (self.heads, self.size))
        content = torch.einsum("bihd,bjhd->bhij", query + self.content_bias, key)
        place = torch.einsum("bihd,jhd->bhij", query + self.position_bias, where)
        scores = (content + _shifted(place)) * self.size**-0.5
        weights = self.dropout(scores.masked_fill(mask, -65000.0).softmax(-1))
        mixed = torch.einsum("bhij,bjhd->bihd", weights.to(value.dtype), value).flatten(2)
        x = self.attention_norm(x + self.dropout(self.out(mixed)))
        return self.feed_norm(x + self.feed(x))


def _shifted(scores: Tensor) -> Tensor:
    """Row i moved left by as many places as it lies above the last."""
    batch, heads, rows, columns = scores.shape
    padded = torch.cat([torch.zeros(batch, heads, rows, 1, dtype=scores.dtype), scores], 3)
    return padded.view(batch, heads, columns + 1, rows)[:, :, 1:].reshape(scores.shape)


class TransformerXL(nn.Module):
    """The layers between one embedding and an adaptive softmax that shares its matrix."""

    def __init__(self, layers: int, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(_VOCABULARY, width)
        self.clusters = nn.Parameter(torch.zeros(len(_TAILS), width))
        self.layers = nn.ModuleList(Layer(width, heads, inner, dropout) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor, memories: list[Tensor]) -> Tensor:
        x = self.dropout(self.tokens(ids))
        length, total = ids.shape[1], ids.shape[1] + memories[0].shape[1]
        mask = torch.ones(length, total, dtype=torch.bool).triu(1 + total - length)
        angles = torch.outer(torch.arange(total).flip(0).float(), torch.arange(x.shape[-1] // 2).float())
        positions = self.dropout(torch.cat([angles.sin(), angles.cos()], -1))
        for layer, memory in zip(self.layers, memories, strict=True):
            x = layer(x, memory, positions, mask)
        return self._loss(x.flatten(0, 1), ids.flatten())

    def _loss(self, x: Tensor, labels: Tensor) -> Tensor:
        """Negative log-likelihood; how many tokens fall into each cluster is fixed, so that no value is read."""
        first = _VOCABULARY - sum(size for size, _ in _TAILS)
        weight = self.tokens.weight
        head = functional.linear(x, torch.cat([weight[:first], self.clusters])).float().log_softmax(1)
        total = -head.gather(1, labels.unsqueeze(1)).sum()
        start = first
        for size, share in _TAILS:
            rows = x[: int(len(x) * share)]
            tail = functional.linear(rows, weight[start : start + size]).float().log_softmax(1)
            total = total - tail.gather(1, labels[: len(rows)].unsqueeze(1)).sum()
            start += size
        return total / len(x)


@model("transformer-xl")
def build(name: str, recipe: Recipe) -> Workload:
    """Base or large, with a memory as long as the segment."""
    layers, width, heads, inner, dropout = _SIZES[name]
    net = TransformerXL(layers, width, heads, inner, dropout)
    ids = token_ids(recipe.batch, recipe.size, _VOCABULARY)
    memories = [torch.zeros(recipe.batch, recipe.size, width) for _ in range(layers)]
    return Workload(model=net, loss=lambda net: net(ids, memories))

"""Attention as Hugging Face's models wrote it out in 2024, when the pairs were measured: more steps than today's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def _causal(scores: Tensor) -> Tensor:
    return torch.ones(scores.shape[-2:], dtype=torch.bool).tril()


def _mix(weights: Tensor, value: Tensor, dropout: float) -> tuple[Tensor, Tensor]:
    weights = functional.dropout(weights, dropout)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights


def opt(_module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> Any:
    """Scores, an added mask, a clamp to the smallest number, softmax in fp32."""
    scores = torch.matmul(query, key.transpose(2, 3))
    lowest = torch.finfo(scores.dtype).min
    batch, _, rows, columns = scores.shape
    mask = torch.full((rows, columns), lowest, dtype=scores.dtype).triu(1).expand(batch, 1, rows, columns)
    scores = torch.max(scores + mask, torch.full((), lowest, dtype=scores.dtype))
    weights = functional.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    return _mix(weights, value, 0.0)


def gpt_neox(_module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> Any:
    """Scores added onto zeros, a causal mask by choice, an added mask, softmax."""
    batch, heads, rows, width = query.shape
    zeros = torch.zeros(batch * heads, rows, key.shape[2], dtype=query.dtype)
    product = torch.baddbmm(zeros, query.flatten(0, 1), key.flatten(0, 1).transpose(1, 2), alpha=width**-0.5)
    scores = product.view(batch, heads, rows, -1)
    scores = torch.where(_causal(scores), scores, torch.finfo(scores.dtype).min)
    scores = scores + torch.zeros(batch, 1, 1, rows, dtype=scores.dtype)
    return _mix(functional.softmax(scores, dim=-1).to(value.dtype), value, 0.0)


def gpt2(_module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> Any:
    """Scores divided, a causal mask by choice, softmax, dropout."""
    scores = torch.matmul(query, key.transpose(-1, -2))
    scores = scores / torch.full([], value.size(-1) ** 0.5, dtype=scores.dtype)
    scores = torch.where(_causal(scores), scores, torch.finfo(scores.dtype).min)
    return _mix(functional.softmax(scores, dim=-1).type(value.dtype), value, 0.1)


def register() -> None:
    """Makes them known to transformers as ``opt-2024``, ``gpt_neox-2024`` and ``gpt2-2024``."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    for name, attention in (("opt-2024", opt), ("gpt_neox-2024", gpt_neox), ("gpt2-2024", gpt2)):
        AttentionInterface.register(name, attention)
        AttentionMaskInterface.register(name, eager_mask)

"""A three-layer LSTM language model in fp32: 64 sequences of 128 tokens, dropout, SGD.

The input embedding and the output head share one matrix.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

VOCABULARY, WIDTH, LAYERS = 33278, 1024, 3
TOKENS = 128
BATCH_SIZE = 64


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.dropout = nn.Dropout(0.4)
        self.lstm = nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True, dropout=0.25)
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.head.weight = self.tokens.weight
        nn.init.uniform_(self.tokens.weight, -0.1, 0.1)

    def forward(self, ids: Tensor) -> Tensor:
        hidden, _ = self.lstm(self.dropout(self.tokens(ids)))
        return self.head(self.dropout(hidden))


def build_model() -> nn.Module:
    return LanguageModel()


def make_batch(batch_size: int) -> Tensor:
    return torch.randint(VOCABULARY, (batch_size, TOKENS + 1))


def compute_loss(model: nn.Module, ids: Tensor) -> Tensor:
    logits = model(ids[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=20.0)

"""Shadows take no device memory and change none: a program without unknown reads has the same peak to the byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CODE = """
import sys
from contextlib import nullcontext
import torch
from torch import nn
from torch.nn import functional as F
from vramdoc.worker.values import ValueShadow

SHADOWED = {shadowed}

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.mix(self.norm(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.dropout(F.gelu(self.up(x), approximate="tanh"), 0.1))

class Gpt(nn.Module):
    def __init__(self, width=256, vocabulary=1000, checkpoint=False):
        super().__init__()
        self.embed, self.place = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.blocks, self.head = nn.ModuleList(Block(width) for _ in range(3)), nn.Linear(width, vocabulary)
        self.checkpoint = checkpoint

    def forward(self, ids):
        x = self.embed(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if self.checkpoint else block(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), ids.flatten())

def train(model, dtype=None, scaler=None, steps=3, **adam):
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), **adam)
    for step in range(steps):
        ids = torch.randint(0, 1000, (4, 512)).cuda()
        with torch.autocast("cuda", dtype=dtype) if dtype else nullcontext():
            loss = model(ids)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad(set_to_none=step == 0)

def programs():
    yield "plain", lambda: train(Gpt())
    yield "bfloat16", lambda: train(Gpt(), torch.bfloat16, foreach=False)
    yield "checkpoint", lambda: train(Gpt(checkpoint=True), torch.bfloat16)
    yield "scaler", lambda: train(Gpt(), torch.float16, torch.amp.GradScaler("cuda"), fused=True)
    yield "scaler foreach", lambda: train(Gpt(), torch.float16, torch.amp.GradScaler("cuda"), foreach=True)
    yield "compiled", lambda: train(torch.compile(Gpt(), backend="aot_eager"))

found = {{}}
for name, run in programs():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with ValueShadow() if SHADOWED else nullcontext() as shadow:
        run()
    found[name] = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), torch.cuda.memory_allocated()]
    if SHADOWED:
        found[name + " rules"] = sorted({{a.rule for a in shadow.assumptions()}})
from torch._dynamo.utils import counters
found["graphs"] = counters["stats"]["unique_graphs"]
emit(found)
"""


def test_the_peak_is_the_same_to_the_byte(on_null_gpu: Callable[..., Any]) -> None:
    """A mode that is only watching must not move the figure; and torch.compile must stay on under it."""
    plain = on_null_gpu(CODE.format(shadowed=False))
    shadowed = on_null_gpu(CODE.format(shadowed=True))
    rules = {name: shadowed.pop(name) for name in list(shadowed) if name.endswith(" rules")}
    assert shadowed == plain
    assert plain["graphs"] >= 1
    # The scaler of a foreach optimizer asks on the host whether the gradients were finite; a fused one does not.
    assert rules == {f"{name} rules": [] for name in plain if name not in ("graphs", "scaler foreach")} | {
        "scaler foreach rules": ["finite"]
    }

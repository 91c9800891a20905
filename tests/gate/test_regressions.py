"""Planted regressions in a small transformer, profiled for real: caught, and blamed on the right module and line."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from vramdoc.gate import Budget, evaluate, footprint, parse_limit, parse_tolerance
from vramdoc.report import Report
from vramdoc.report.findings import Finding
from vramdoc.runner.many import Wanted, profile_many

MODEL = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    VOCABULARY, WIDTH, HEADS, TOKENS = 8192, 256, 4, 512
    BATCH_SIZE = 4
    kept = []

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.inputs, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            query, key, value = self.inputs(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(query, key, value)
            return self.out(mixed.transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention()
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x):
            x = x + self.attention(x)
            return x + self.mlp(x)

    def build_model():
        return nn.Sequential(nn.Embedding(VOCABULARY, WIDTH), Block(), Block(), nn.Linear(WIDTH, VOCABULARY))

    def make_batch(batch_size):
        return torch.randint(VOCABULARY, (batch_size, TOKENS))

    def compute_loss(model, ids):
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(ids)
            loss = F.cross_entropy(logits.flatten(0, 1), ids.flatten())
        return loss
"""
SDPA = "mixed = F.scaled_dot_product_attention(query, key, value)"
SCORES = "scores = (query @ key.transpose(-2, -1)).float(); mixed = scores.softmax(-1).to(value.dtype) @ value"
CHANGES = {
    "before": ("", ""),
    "again": ("", ""),
    "scores": (SDPA, SCORES),
    "leak": ("return loss", "kept.append(logits); return loss"),
    "vocabulary": ("= 8192,", "= 24576,"),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """One profile of the model after each change."""
    wanted = []
    for name, (old, new) in CHANGES.items():
        file = tmp_path_factory.mktemp(name) / "model.py"
        file.write_text(textwrap.dedent(MODEL).replace(old, new))
        assert not old or new in file.read_text()
        wanted.append(Wanted(target=str(file), gpu="a100-40"))
    outcomes = profile_many(wanted)
    assert all(isinstance(outcome, Report) for outcome in outcomes), outcomes
    return dict(zip(CHANGES, outcomes, strict=True))  # type: ignore[arg-type]


def caught(reports: dict[str, Report], name: str, tolerance: str) -> Finding:
    """The one finding of a change, over what was before it."""
    budget = Budget(name="model", limit=None)
    tolerances = [parse_tolerance(tolerance)]
    (found,) = evaluate(reports[name], budget, baseline=footprint(reports["before"]), tolerances=tolerances).findings
    assert found.line is not None
    assert found.file == found.line.file == reports[name].target
    source = Path(reports[name].target).read_text().splitlines()
    assert source[found.file_line - 1].strip() == found.line.code, "the annotation stands at the line itself"
    return found


def test_attention_scores_in_float32(reports: dict[str, Report]) -> None:
    """The module is the attention of every layer, the line the one that keeps the scores."""
    found = caught(reports, "scores", "peak:3%")
    assert found.module is not None
    assert found.module.name == "*.attention"
    assert found.line is not None
    assert found.line.code == SCORES
    scores = 4 * 4 * 512 * 512  # elements, of one layer
    assert found.module.grown_bytes is not None
    assert found.module.grown_bytes >= 2 * 4 * scores


def test_leak(reports: dict[str, Report]) -> None:
    """Kept logits: the growth per step is their size, and the line is the one that makes them."""
    found = caught(reports, "leak", "growth:0")
    assert found.over_bytes >= 4 * 512 * 8192 * 2
    assert found.line is not None
    assert found.line.code == "logits = model(ids)"
    assert found.module is not None
    assert found.module.name == "3"
    caught(reports, "leak", "peak:0")


def test_bigger_vocabulary(reports: dict[str, Report]) -> None:
    """The head or the embedding, and the line of the loss, where the float32 logits are."""
    found = caught(reports, "vocabulary", "peak:10%")
    assert found.module is not None
    assert found.module.name in ("0", "3")
    assert found.line is not None
    assert "F.cross_entropy" in found.line.code


def test_same_model_same_bytes(reports: dict[str, Report]) -> None:
    """The same code gives the same figures, so that a budget may be as tight as one likes."""
    before, again = (replace(footprint(reports[name]), target="") for name in ("before", "again"))
    assert before == again
    limit = parse_limit(f"{reports['before'].peak.reserved_bytes}B")
    tolerances = [parse_tolerance(text) for text in ("peak:0", "growth:0", "backward:0", "*.mlp:0")]
    budget = Budget(name="model", limit=limit)
    assert evaluate(reports["again"], budget, baseline=footprint(reports["before"]), tolerances=tolerances).passed

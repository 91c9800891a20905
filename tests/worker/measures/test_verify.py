"""The check on the host: measures that keep the result keep the gradients, and the check can see one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.measures.conftest import Bench
from vramdoc.errors import MeasureError
from vramdoc.report.measurement import Choice

# Relative to the largest value, about 1. A gradient that is zero but for the rounding of float64, a few 1e-16, comes
# through Adam's division by 1e-8 and a learning rate of 1e-4 to 1e-3 as up to 1e-11 in a parameter.
ROUNDING = 1e-11

FROM_FLOATS = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))

    def forward(self, x):
        return x + self.mlp(x)

def build_model():
    return nn.Sequential(*(Block() for _ in range(4)))

def make_batch(batch_size):
    return torch.randn(4, 64)
"""


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("transformer", "checkpoint"), ("transformer", "selective_checkpoint"), ("transformer", "offload_activations"),
        ("transformer", "micro_batch"), ("transformer", "optimizer_in_backward"), ("transformer", "fused_optimizer"),
        ("transformer", "no_foreach"), ("convnet", "checkpoint"), ("convnet", "channels_last"),
        ("convnet", "zero_grad_to_none"), ("multihead", "sdpa"), ("causal", "sdpa"),
        ("causal", "chunked_cross_entropy"), ("causal", "checkpoint"),
    ],
)  # fmt: skip
def test_same_gradients(bench: Bench, target: str, name: str) -> None:
    """Free and speed measures change gradients and parameters by rounding only."""
    found = bench.verify(target, Choice(name=name))
    assert found.largest_difference <= ROUNDING * found.largest_value
    assert found.largest_value > 0.01
    assert "float64" in found.copy


@pytest.mark.parametrize("name", ["shorter_sequence", "adafactor"])
def test_other_gradients(bench: Bench, name: str) -> None:
    """The check is able to fail: another training gives other numbers."""
    assert bench.verify("transformer", Choice(name=name)).largest_difference > 1e-6


def test_batch_norm_sees_micro_batches(bench: Bench) -> None:
    """Batch norm makes micro-batches another computation, and both the check and a note say so."""
    choice = Choice(name="micro_batch")
    assert bench.verify("convnet", choice).largest_difference > 1e-6
    assert any("batch norm" in warning for warning in bench.measure("convnet", choice).warnings)


def test_checkpoint_whose_input_needs_no_gradient(bench: Bench, tmp_path: Path) -> None:
    """Checkpoints of the reentrant kind train nothing behind an input without gradient: those applied here do."""
    file = tmp_path / "target.py"
    file.write_text(FROM_FLOATS)
    found = bench.verify(file, Choice(name="checkpoint"))
    assert found.largest_difference == 0.0
    assert found.tensors == 2 * 8 + 8, "gradients of two blocks' four parameters in two steps, and the parameters"
    reentrant = """
build_plain = build_model

def build_model():
    import functools, torch.utils.checkpoint
    model = build_plain()
    for block in model:
        block.forward = functools.partial(torch.utils.checkpoint.checkpoint, block.forward, use_reentrant=True)
    return model
"""
    file.write_text(FROM_FLOATS + reentrant)
    with pytest.raises(MeasureError, match="does not require grad"):
        bench.verify(file, Choice(name="fused_optimizer"))


def test_what_cannot_be_checked(bench: Bench) -> None:
    """A measure that needs a GPU says so, and one that does not apply gives its reason here too."""
    with pytest.raises(MeasureError, match="have to pass through a GPU"):
        bench.verify("transformer", Choice(name="offload_parameters"))
    with pytest.raises(MeasureError, match="no two-dimensional convolution"):
        bench.verify("transformer", Choice(name="channels_last"))


def test_large_model_is_made_small(bench: Bench, tmp_path: Path) -> None:
    """A Hugging Face model of billions of parameters is checked on a narrow one; another large one says why not."""
    file = tmp_path / "target.py"
    large = "hidden_size=8192, intermediate_size=28672, num_hidden_layers=4, num_attention_heads=8"
    file.write_text(f"""
import torch, transformers

def build_model():
    with torch.device("meta"):
        return transformers.LlamaForCausalLM(transformers.LlamaConfig({large}))

def make_batch(batch_size):
    ids = torch.randint(32000, (batch_size, 64))
    return {{"input_ids": ids, "labels": ids}}
""")
    found = bench.verify(file, Choice(name="checkpoint"))
    assert found.copy.startswith("a narrow configuration")
    assert found.largest_difference <= ROUNDING
    file.write_text(FROM_FLOATS.replace("256", "10_000_000"))
    with pytest.raises(MeasureError, match="more than 200,000,000 parameters"):
        bench.verify(file, Choice(name="checkpoint"))

"""A measure that does not apply says why, in words for a user, and ends nothing else."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.measures.conftest import Bench, file_of
from vramdoc.errors import MeasureError
from vramdoc.report.measurement import Choice


@pytest.fixture(scope="module")
def t4() -> Iterator[Bench]:
    """On a GPU without bf16."""
    made = Bench("t4")
    yield made
    made.worker.close()


def appended(folder: Path, target: str, code: str) -> Path:
    file = folder / "target.py"
    file.write_text(f"{file_of(target).read_text()}\n\n{textwrap.dedent(code)}")
    return file


@pytest.mark.parametrize(
    ("target", "name", "options", "reason"),
    [
        ("transformer", "channels_last", {}, "no two-dimensional convolution"),
        ("transformer", "sdpa", {}, "no attention layer that is known"),
        ("transformer", "chunked_cross_entropy", {}, "not a Hugging Face causal model"),
        ("transformer", "zero_grad_to_none", {}, "freed after each step already"),
        ("transformer", "ddp_bucket_view", {}, "one process only"),
        ("transformer", "checkpoint", {"blocks": 5}, "has 4 blocks of class Block, not 5"),
        ("transformer", "checkpoint", {"which": "2-9"}, "4 blocks, numbered from 0"),
        ("transformer", "checkpoint", {"block": "Layer"}, "no module of class Layer"),
        ("transformer", "micro_batch", {"parts": 16}, "batch of 8 cannot be split in 16"),
        ("heavy", "checkpoint", {}, "no blocks of one class repeat"),
        ("heavy", "smaller_batch", {"divide": 4}, "batch of 2 cannot be divided by 4"),
        ("convnet", "lora", {}, "have no linear layers"),
        ("convnet", "shorter_sequence", {}, "no integer tensors of shape"),
    ],
)
def test_does_not_apply(bench: Bench, target: str, name: str, options: dict[str, int | str], reason: str) -> None:
    """What a measure needs and the target lacks is named."""
    with pytest.raises(MeasureError, match=reason):
        bench.measure(target, Choice(name=name, options=dict(options)))


@pytest.mark.parametrize(
    ("target", "name", "code", "reason"),
    [
        ("transformer", "fused_optimizer", "torch.optim.AdamW(model.parameters(), fused=True)", "fused already"),
        ("transformer", "no_foreach", "torch.optim.AdamW(model.parameters(), fused=True)", "is fused"),
        ("transformer", "no_foreach", "torch.optim.AdamW(model.parameters(), foreach=False)", "one after the other"),
        (
            "transformer",
            "adam_8bit",
            "torch.optim.SGD(model.parameters())",
            "SGD has not an 8-bit variant|bitsandbytes",
        ),
        ("transformer", "sgd_momentum", "torch.optim.SGD(model.parameters())", "is SGD already"),
        ("transformer", "adafactor", "torch.optim.SGD(model.parameters())", "keeps no state"),
        ("transformer", "fused_optimizer", "torch.optim.Adamax(model.parameters())", "Adamax has not a fused step"),
    ],
)
def test_optimizers(bench: Bench, tmp_path: Path, target: str, name: str, code: str, reason: str) -> None:
    """An optimizer that is so already, or cannot be so, is told from one that can."""
    file = appended(tmp_path, target, f"def make_optimizer(model):\n    return {code}")
    with pytest.raises(MeasureError, match=reason):
        bench.measure(file, Choice(name=name))


@pytest.mark.parametrize(
    ("target", "name", "code", "reason"),
    [
        (
            "transformer",
            "bf16_autocast",
            """
            plain = compute_loss
            def compute_loss(model, batch):
                with torch.autocast("cuda", dtype=torch.float16):
                    return plain(model, batch)
            """,
            r"runs under autocast \(float16\) already",
        ),
        (
            "transformer",
            "fp16_autocast",
            "def build_model(): return Model().bfloat16()",
            "parameters are bfloat16 already",
        ),
        (
            "convnet",
            "channels_last",
            "def build_model(): return Model().to(memory_format=torch.channels_last)",
            "channels-last already",
        ),
        (
            "multihead",
            "sdpa",
            """
            class Block(Block):
                def forward(self, x):
                    return x + self.attention(x, x, x, need_weights=False)[0]
            """,
            "SDPA is at work already",
        ),
        ("transformer", "optimizer_in_backward", "MICRO_BATCHES = 2", "accumulated over micro-batches"),
        (
            "causal",
            "chunked_cross_entropy",
            "def compute_loss(model, batch): return model(batch['input_ids']).logits.sum()",
            "called without labels",
        ),
    ],
)
def test_already(bench: Bench, tmp_path: Path, target: str, name: str, code: str, reason: str) -> None:
    """What the target does already, wherever in its code, is seen by running it."""
    with pytest.raises(MeasureError, match=reason):
        bench.measure(appended(tmp_path, target, code), Choice(name=name))


def test_gpu_without_bf16(t4: Bench) -> None:
    """On a T4 bf16 is refused by name of the GPU, fp16 is not."""
    for name in ("bf16_autocast", "bf16_parameters"):
        with pytest.raises(MeasureError, match=r"Tesla T4 has no bf16 \(compute capability 7.5\)") as caught:
            t4.measure("transformer", Choice(name=name))
        assert "fp16_autocast" in caught.value.hint
    assert t4.measure("transformer", Choice(name="fp16_autocast")).peak_allocated_bytes

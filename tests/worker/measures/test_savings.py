"""What a measure saves against the same change written by hand, and the printed code against the applied measure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worker.measures.conftest import Bench, file_of
from vramdoc.report.measurement import Choice, Measurement

ByHand = dict[str, dict[str, list[int]]]

BOTH = (
    "expandable_segments", "smaller_batch", "bf16_parameters", "freeze", "checkpoint", "selective_checkpoint",
    "offload_activations", "offload_parameters", "bf16_autocast", "fp16_autocast", "micro_batch", "adafactor",
    "sgd_momentum", "fused_optimizer", "no_foreach", "optimizer_in_backward",
)  # fmt: skip
CASES = [
    *((target, name) for target in ("transformer", "convnet") for name in BOTH),
    ("transformer", "shorter_sequence"), ("transformer", "lora"), ("causal", "lora"), ("causal", "checkpoint"),
    ("causal", "sdpa"), ("multihead", "sdpa"), ("multihead", "checkpoint"), ("causal", "chunked_cross_entropy"),
    ("convnet", "channels_last"), ("convnet", "zero_grad_to_none"), ("heavy", "bf16_autocast"),
    ("tied", "chunked_cross_entropy"), ("tied", "shorter_sequence"),
    ("autoencoder", "channels_last"), ("autoencoder", "zero_grad_to_none"),
]  # fmt: skip


def peaks(measurement: Measurement) -> list[int]:
    return [measurement.peak_allocated_bytes, measurement.peak_reserved_bytes]


def printed(measurement: Measurement) -> str:
    return "\n\n".join(applied.code for applied in measurement.applied)


WithCode = Callable[[str, str], Path]


@pytest.fixture
def with_code(tmp_path: Path) -> WithCode:
    """Writes a fresh copy of a target with code appended."""

    def write(target: str, code: str) -> Path:
        file = tmp_path / "target.py"
        file.write_text(f"{file_of(target).read_text()}\n\n{code}")
        return file

    return write


@pytest.mark.parametrize(("target", "name"), CASES)
def test_saving_and_code(bench: Bench, by_hand: ByHand, with_code: WithCode, target: str, name: str) -> None:
    """The peaks with a measure are those of the change by hand, and those of the target with the printed code."""
    assert peaks(bench.plain(target)) == by_hand[target]["plain"]
    applied = bench.measure(target, Choice(name=name))
    assert peaks(applied) == by_hand[target][name]
    assert peaks(bench.measure(with_code(target, printed(applied)))) == peaks(applied)


def test_some_blocks(bench: Bench, by_hand: ByHand, with_code: WithCode) -> None:
    """Checkpointing the first two of four blocks, by their number or one by one, is what the same by hand is."""
    first = bench.measure("transformer", Choice(name="checkpoint", options={"blocks": 2}))
    assert peaks(first) == by_hand["transformer"]["checkpoint 2"]
    assert peaks(bench.measure("transformer", Choice(name="checkpoint", options={"which": "0-1"}))) == peaks(first)
    assert "model.blocks[:2]" in printed(first)
    assert peaks(bench.measure(with_code("transformer", printed(first)))) == peaks(first)


def test_combined_code(bench: Bench, with_code: WithCode) -> None:
    """Code of several measures, one after the other, does what they do together."""
    plan = [
        Choice(name="checkpoint", options={"blocks": 3}),
        Choice(name="fp16_autocast"),
        Choice(name="micro_batch", options={"parts": 4}),
        Choice(name="sgd_momentum"),
        Choice(name="fused_optimizer"),
    ]
    for target in ("transformer", "convnet", "multihead"):
        together = bench.measure(target, *plan)
        assert peaks(together) < peaks(bench.plain(target))
        assert [applied.name for applied in together.applied] == [choice.name for choice in plan]
        assert peaks(bench.measure(with_code(target, printed(together)))) == peaks(together), target


def test_changes_of_the_batch(bench: Bench, with_code: WithCode) -> None:
    """Measures that all change the batch do not undo each other."""
    for target, names in (
        ("convnet", ("bf16_parameters", "channels_last", "micro_batch")),
        ("causal", ("shorter_sequence", "bf16_parameters", "micro_batch")),
    ):
        together = bench.measure(target, *(Choice(name=name) for name in names))
        assert peaks(bench.measure(with_code(target, printed(together)))) == peaks(together), target


def test_bucket_views(with_code: WithCode) -> None:
    """Gradients that lie in DDP's buckets are there once: four matrices of 2048 x 2048 floats less."""
    two = Bench("a100-80", count=2)
    try:
        plain = two.measure("heavy", Choice(name="ddp"))
        views = two.measure("heavy", Choice(name="ddp"), Choice(name="ddp_bucket_view"))
        assert plain.peak_allocated_bytes - views.peak_allocated_bytes == 4 * 2048 * 2048 * 4
        assert peaks(two.measure(with_code("heavy", printed(views)))) == peaks(views)
    finally:
        two.worker.close()


def test_autocast_that_uses_more(bench: Bench) -> None:
    """With many weights and few activations the kept bf16 copies cost more than they save: no saving is claimed."""
    assert peaks(bench.measure("heavy", Choice(name="bf16_autocast"))) > peaks(bench.plain("heavy"))

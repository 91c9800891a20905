"""Whole profiles on the null GPU: one worker, several runs, one report."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import vramdoc
from vramdoc.report import CATEGORIES, Report, decode, encode

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models"
LINEAR_BYTES = 1024 * 1024 * 4

MLP = """
    import torch
    from torch import nn

    BATCH_SIZE = 4

    def build_model():
        return nn.Sequential(nn.Linear(1024, 1024, bias=False), nn.ReLU(), nn.Linear(1024, 1024, bias=False))

    def make_batch(batch_size):
        return torch.randn(batch_size, 1024)
"""


def write(folder: Path, source: str) -> Path:
    file = folder / "model.py"
    file.write_text(textwrap.dedent(source))
    return file


@pytest.fixture(scope="module")
def gpt2() -> Report:
    return vramdoc.profile(SAMPLES / "gpt2.py", gpu="a100-40")


def test_gpt2(gpt2: Report) -> None:
    """Parameters and AdamW's states of GPT-2 are what their count says, and every category is there."""
    parameters = 124_439_808 * 4
    assert set(gpt2.categories) == set(CATEGORIES)
    assert sum(gpt2.categories.values()) == gpt2.peak.allocated_bytes
    assert gpt2.categories["parameters"] == parameters
    assert gpt2.categories["optimizer_state"] == 2 * parameters
    assert gpt2.categories["workspace"] == 2 * 8_519_680, "cuBLAS: one for the main thread, one for autograd's"
    assert gpt2.categories["inputs"] == 8 * 1025 * 8
    assert (gpt2.peak.phase, gpt2.fits, gpt2.alloc_retries) == ("backward", True, 0)
    assert (gpt2.device.kind, gpt2.batch_size, gpt2.growth_bytes_per_step) == ("null", 8, 0)


def test_passes_agree(gpt2: Report) -> None:
    """Recording what each block is does not change the peak by a byte, and rounding stays below 1 %."""
    assert gpt2.attribution.allocated_bytes == gpt2.peak.allocated_bytes
    assert 0 <= gpt2.categories["rounding"] < gpt2.peak.allocated_bytes // 100


def test_blame(gpt2: Report) -> None:
    """The line and the module that hold most are the ones that a reader of GPT-2 expects: the float32 logits."""
    assert gpt2.lines[0].file == "gpt2.py"
    assert "cross_entropy" in gpt2.lines[0].code
    assert gpt2.largest[0].bytes == 8 * 1024 * 50257 * 4
    blocks = [row for row in gpt2.modules if row.class_name == "Block"]
    assert len(blocks) == 12
    assert len({row.parameter_bytes for row in blocks}) == 1


def test_phases_and_timeline(gpt2: Report) -> None:
    """The phases come in the order of a step, the highest of them is the peak, and the timeline reaches it."""
    assert [phase.name for phase in gpt2.phases] == ["load", "forward", "loss", "backward", "optimizer", "after_step"]
    assert max(phase.peak_bytes for phase in gpt2.phases) == gpt2.peak.allocated_bytes
    top = max(point.allocated_bytes for point in gpt2.timeline)
    assert abs(top - gpt2.peak.allocated_bytes) < gpt2.peak.allocated_bytes // 100


def test_round_trip(gpt2: Report) -> None:
    """A real report survives its JSON."""
    assert decode(encode(gpt2)) == gpt2


def test_batch_size_and_defaults(tmp_path: Path) -> None:
    """Without make_optimizer it is AdamW, without compute_loss the sum; --batch-size replaces the target's."""
    report = vramdoc.profile(write(tmp_path, MLP), gpu="a100-40", batch_size=2, steps=4)
    assert (report.batch_size, report.steps) == (2, 4)
    assert report.categories["parameters"] == 2 * LINEAR_BYTES
    assert report.categories["optimizer_state"] == 4 * LINEAR_BYTES + 2 * 0
    assert report.categories["inputs"] == 2 * 1024 * 4


def test_growth_is_found() -> None:
    """A list that keeps its outputs grows by just their size in each step."""
    report = vramdoc.profile(SAMPLES / "leaky.py", gpu="a100-40")
    assert report.growth_bytes_per_step > 0
    assert any("grows by" in warning for warning in report.warnings)


def test_too_big_is_a_finding() -> None:
    """A step over its GPU is measured without the limit, and the run with it says where memory ran out."""
    report = vramdoc.profile(SAMPLES / "too_big.py", gpu="a100-40")
    assert not report.fits
    assert report.peak.reserved_bytes > report.device.total_bytes
    assert report.limited is not None
    assert "CUDA out of memory" in report.limited.out_of_memory
    assert report.limited.reserved_bytes <= report.device.total_bytes
    assert report.limited.phase in {"forward", "loss", "backward"}


def test_no_gpu_named(tmp_path: Path) -> None:
    """Without --gpu and without a GPU a null one is taken, and the report says which."""
    report = vramdoc.profile(write(tmp_path, MLP))
    if report.device.kind == "null":
        assert any(report.device.name in warning for warning in report.warnings)


def test_the_users_folder_does_not_shadow_the_standard_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A random.py in the working folder breaks neither torch nor the worker."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "random.py").write_text("raise RuntimeError('the wrong random')\n")
    (tmp_path / "code").mkdir()
    report = vramdoc.profile(write(tmp_path / "code", MLP), gpu="a100-40")
    assert report.categories["parameters"] == 2 * LINEAR_BYTES

"""Advice for small real targets: every saving is what two runs give, and the printed code gives what was promised."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import vramdoc
from vramdoc import advise
from vramdoc.report.advice import AdviceReport, decode_advice, encode_advice

BLOCKS = """
    import torch
    from torch import nn

    BATCH_SIZE = 64

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)

        def forward(self, x):
            return x + self.down(nn.functional.gelu(self.up(x)))

    def build_model():
        return nn.Sequential(*(Block() for _ in range(6)))

    def make_batch(batch_size):
        return torch.randn(batch_size, 128, 512)

    def compute_loss(model, batch):
        return model(batch).square().mean()
"""
GPU = "t4"
BUDGET = 600 * 2**20


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("target") / "model.py"
    file.write_text(textwrap.dedent(BLOCKS))
    return file


@pytest.fixture(scope="module")
def report(target: Path) -> AdviceReport:
    asked = advise.checked(target, gpu=GPU, budget_bytes=BUDGET, allow=["checkpoint"], verify=True)
    return advise.advise(asked, cache=target.parent / "cache")


def test_savings_are_differences_of_runs(target: Path, report: AdviceReport) -> None:
    """The base is what profile says; a measure's saving is the difference of two peaks that are in ``runs``."""
    base = vramdoc.profile(target, gpu=GPU)
    assert report.base.peak == base.peak
    assert report.base.categories == base.categories
    for effect in report.effects:
        measurement = report.run(effect.run).measurement
        if measurement is not None:
            assert effect.saved_bytes == base.peak.reserved_bytes - measurement.peak_reserved_bytes
            assert effect.allocated_bytes == measurement.peak_allocated_bytes
        assert bool(effect.reason) == (effect.saved_bytes <= 0.001 * base.peak.reserved_bytes)
    saved = [effect.saved_bytes for effect in report.effects]
    assert saved == sorted(saved, reverse=True)


def test_reasons(report: AdviceReport) -> None:
    """What cannot be used here says why, in the worker's words or ours."""
    reasons = {effect.choice.name: effect.reason for effect in report.effects}
    assert "convolution" in reasons["channels_last"]
    assert "compute capability" in reasons["bf16_autocast"], "a T4 has no bf16"
    assert reasons["checkpoint"] == ""


def test_code_gives_what_was_promised(target: Path, report: AdviceReport) -> None:
    """A plan's code, appended to a fresh copy of the target as printed, gives exactly its peak."""
    plan = next(plan for plan in report.plans if plan.fits)
    assert plan.reserved_bytes <= BUDGET < report.base.peak.reserved_bytes
    changed = target.with_name("changed.py")
    changed.write_text(target.read_text() + "\n\n" + plan.code)
    found = vramdoc.profile(changed, gpu=GPU)
    assert (found.peak.allocated_bytes, found.peak.reserved_bytes) == (plan.allocated_bytes, plan.reserved_bytes)


def test_largest_batch(target: Path, report: AdviceReport) -> None:
    """The largest batch fits the budget, and one sample more does not."""
    found = report.largest_batch
    assert found is not None
    assert found.reserved_bytes <= BUDGET
    for size, fits in ((found.size, True), (found.size + 1, False)):
        peak = vramdoc.profile(target, gpu=GPU, batch_size=size).peak
        assert (peak.reserved_bytes <= BUDGET) is fits


def test_same_gradients(report: AdviceReport) -> None:
    """Checkpointing is shown to leave gradients as they were."""
    proofs = {proof.name: proof for proof in report.proofs}
    assert proofs["checkpoint"].largest_difference is not None
    assert proofs["checkpoint"].largest_difference <= 1e-12 * max(proofs["checkpoint"].largest_value, 1.0)


def test_again_from_the_cache(target: Path, report: AdviceReport) -> None:
    """The same question again is answered from disk, with the same figures."""
    asked = advise.checked(target, gpu=GPU, budget_bytes=BUDGET, allow=["checkpoint"])
    again = advise.advise(asked, cache=target.parent / "cache")
    assert again.cached == again.measured
    assert again.plans == report.plans
    assert decode_advice(encode_advice(again)) == again


def test_target_that_fails(tmp_path: Path) -> None:
    """A target that cannot run is the same error as for profile: exit code 3 and the user's own traceback."""
    (tmp_path / "model.py").write_text("def build_model(): raise ValueError('no weights')\ndef make_batch(n): ...\n")
    done = subprocess.run(
        [sys.executable, "-m", "vramdoc", "advise", "model.py", "--gpu", GPU],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3
    assert "no weights" in done.stderr
    assert "in build_model" in done.stderr

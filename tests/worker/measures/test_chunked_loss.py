"""Whose chunked linear cross-entropy a target gets: torch's, else Liger's, else a reason with what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.measures.conftest import Bench, file_of
from vramdoc.errors import MeasureError
from vramdoc.report.measurement import Choice

CHUNKED = Choice(name="chunked_cross_entropy")
OLDER_TORCH = """
if hasattr(torch.nn, "LinearCrossEntropyOptions"):
    del torch.nn.LinearCrossEntropyOptions
"""
WITH_LIGER = """
import pathlib, sys
sys.path.insert(0, str(pathlib.Path(__file__).parent / "installed"))
"""
WITHOUT_LIGER = """
import sys
sys.modules["liger_kernel"] = None
"""

# Liger's order of arguments, and one tensor of a size of its own in place of its chunks: 24 MiB, gone with the forward.
STAND_IN = """
import torch

class Loss(torch.autograd.Function):
    @staticmethod
    def forward(context, weight, hidden, labels):
        assert weight.shape[1:] == hidden.shape[1:] and labels.shape == hidden.shape[:1] and labels.dtype == torch.int64
        torch.empty(24 << 20, dtype=torch.uint8, device=hidden.device)
        context.save_for_backward(torch.zeros_like(weight), torch.zeros_like(hidden))
        return hidden.new_zeros(())

    @staticmethod
    def backward(context, gradient):
        return *context.saved_tensors, None

class LigerFusedLinearCrossEntropyLoss(torch.nn.Module):
    def forward(self, lin_weight, _input, target, bias=None):
        return Loss.apply(lin_weight, _input, target)
"""
BY_HAND = """
from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

def compute_loss(model, batch):
    hidden = {decoder}(input_ids=batch["input_ids"]).last_hidden_state
    predictions, labels = hidden[:, :-1].reshape(-1, hidden.shape[-1]), batch["labels"][:, 1:].reshape(-1)
    return LigerFusedLinearCrossEntropyLoss()(model.lm_head.weight, predictions, labels)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a package that is called as Liger is. The real one needs a compiler for the GPU's kernels."""
    package = tmp_path / "installed" / "liger_kernel" / "transformers"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").write_text(STAND_IN)
    return tmp_path


def written(folder: Path, target: str, *code: str) -> Path:
    file = folder / "target.py"
    file.write_text("\n\n".join([file_of(target).read_text(), *code]))
    return file


def test_torch_comes_first(bench: Bench, installed: Path) -> None:
    """Who has both needs no other package than torch in the code."""
    applied = bench.measure(written(installed, "causal", WITH_LIGER), CHUNKED).applied[0]
    assert "torch.nn.functional.linear_cross_entropy(" in applied.code
    assert "liger" not in applied.code.lower()


@pytest.mark.parametrize(("target", "decoder"), [("causal", "model.model"), ("tied", "model.transformer")])
def test_liger_where_torch_has_none(bench: Bench, installed: Path, target: str, decoder: str) -> None:
    """Applied, printed and written by hand from Liger's own signature, the peaks are one."""
    older = (OLDER_TORCH, WITH_LIGER)
    applied = bench.measure(written(installed, target, *older), CHUNKED)
    code = applied.applied[0].code
    assert "LigerFusedLinearCrossEntropyLoss()(" in code
    assert "linear_cross_entropy(" not in code
    by_hand = bench.measure(written(installed, target, *older, BY_HAND.format(decoder=decoder)))
    printed = bench.measure(written(installed, target, *older, code))
    peaks = [(each.peak_allocated_bytes, each.peak_reserved_bytes) for each in (applied, by_hand, printed)]
    assert peaks == [peaks[0]] * 3
    assert applied.peak_allocated_bytes < bench.plain(target).peak_allocated_bytes


def test_liger_is_not_checked_on_the_host(bench: Bench, installed: Path) -> None:
    """Its kernels are Triton's: the check says that it cannot be made, and does not fail in them."""
    with pytest.raises(MeasureError, match="Liger's kernels run on a GPU only"):
        bench.verify(written(installed, "causal", OLDER_TORCH, WITH_LIGER), CHUNKED)


def test_neither(bench: Bench, tmp_path: Path) -> None:
    """Both ways out are named, and what to install."""
    with pytest.raises(MeasureError, match=r"no chunked linear cross-entropy .*2\.14.*liger_kernel") as caught:
        bench.measure(written(tmp_path, "causal", OLDER_TORCH, WITHOUT_LIGER), CHUNKED)
    assert "pip install liger-kernel" in caught.value.hint

"""A suite as a user would write it. ``test_pytest_plugin.py`` runs a copy of it, and says what must come of it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from net import WIDTH, Net

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 2**20


def mebibytes(count: int) -> torch.Tensor:
    return torch.empty(count * MIB, dtype=torch.uint8, device="cuda")


def train(model: torch.nn.Module, steps: int, kept: list[torch.Tensor] | None = None) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        loss = model(torch.randn(4096, WIDTH, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if kept is not None:
            kept.append(loss)


@pytest.fixture(scope="module")
def held() -> Iterator[torch.Tensor]:
    mebibytes(100)  # gone before any test begins
    print("held is set up")
    yield mebibytes(8)
    print("held is torn down")


@pytest.mark.limit_vram("12MiB", gpu="a100-40")
def test_exactly_at_the_limit(held: torch.Tensor) -> None:
    mebibytes(4)
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == held.nbytes
    mebibytes(1)


@pytest.mark.limit_vram("12MiB", gpu="a100-40")
def test_one_block_over(held: torch.Tensor) -> None:
    print("said in the test")
    mebibytes(4)
    torch.empty(1, device="cuda")
    held_and_more = [held, mebibytes(4), torch.empty(1, device="cuda")]
    assert len(held_and_more) == 3


@pytest.mark.limit_vram("16MiB")
def test_planted_scores() -> None:
    train(Net().to(DEVICE), 1)


@pytest.mark.limit_growth("0B")
@pytest.mark.parametrize("leaks", [False, True])
def test_steps(leaks: bool) -> None:
    train(Net().cuda(), 5, [] if leaks else None)


@pytest.mark.limit_growth("0B")
def test_too_few_steps() -> None:
    train(Net().cuda(), 2)


@pytest.mark.limit_vram("1GiB")
def test_on_the_host() -> None:
    Net()(torch.randn(2, WIDTH))


def test_figures(vram: Any) -> None:
    warnings.warn("from the test", UserWarning, stacklevel=1)
    mebibytes(64)
    assert (vram.peak_bytes, vram.allocated_bytes) == (64 * MIB, 0)
    model = Net().cuda()
    mebibytes(128)
    train(model, 3)
    with pytest.raises(LookupError, match="there were build, forward, backward, optimizer, after_step"):
        vram.phase("lunch")
    assert vram.peak_bytes == vram.phase("build").peak_bytes == (128 + 2) * MIB
    assert vram.categories["parameters"] == 2 * MIB
    assert sum(vram.categories.values()) == vram.peak_bytes
    assert vram.growth_bytes == 0


def test_steps_without_an_optimizer(vram: Any) -> None:
    cache = []
    for _ in range(4):
        with vram.step():
            cache.append(mebibytes(3))
    assert vram.growth_bytes == 3 * MIB


@pytest.mark.limit_vram("50%", gpu="rtx-4090", metric="device")
class TestOfOneClass:
    """Marks of a class hold for its tests, and a test's own argument wins."""

    def test_reads_values(self, tmp_path: Path) -> None:
        (tmp_path / "written").write_text("in a folder of its own")
        assert (torch.ones(3, device="cuda") * 2).sum().item() == 6

    @pytest.mark.limit_vram("1MiB")
    def test_context_counts(self) -> None:
        torch.empty(1, device="cuda")

    def test_does_not_fit(self) -> None:
        mebibytes(30 * 1024)

    @pytest.mark.xfail(raises=AssertionError, strict=True)
    def test_expected_to_fail(self) -> None:
        raise AssertionError

    @pytest.mark.skipif(DEVICE != "cpu", reason="seen on the null GPU")
    def test_skipped(self) -> None: ...


@pytest.mark.limit_vram("1GiB")
def test_dies() -> None:
    os.abort()


def test_elsewhere() -> None:
    assert os.environ.get("VRAMDOC_NULLGPU") is None

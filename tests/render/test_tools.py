"""The views of ``vramdoc gpus`` and ``vramdoc env``."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from vramdoc.hardware import all_gpus, find
from vramdoc.render.terminal.environment import render_environment
from vramdoc.render.terminal.gpus import render_gpus
from vramdoc.runner.environment import Environment, NullGpuState, RealGpu, TorchFacts

READY = Environment(
    vramdoc="0.1.0",
    python="3.11.2 on Linux x86_64",
    torch=TorchFacts(version="2.14.1+cu130", cuda="13.0", cudnn="9.20.0", nccl="2.28.9"),
    driver="580.65.06",
    gpus=(RealGpu(index=0, name="NVIDIA H100 80GB HBM3", total_bytes=85_520_809_984),),
    null_gpu=NullGpuState(ready=True),
    advice=(),
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_gpu_is_listed_once(width: int) -> None:
    """The table is where a name for --gpu is looked up."""
    text = render_gpus(all_gpus(), width=width)
    first_words = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    for gpu in all_gpus():
        assert first_words.count(gpu.short_name) == 1
    assert max(map(cell_len, text.splitlines())) <= width


def test_figures_of_a_gpu() -> None:
    """Total as CUDA reports it, compute capability, and where there is room its width and speed."""
    line = next(line for line in render_gpus([find("a6000")], width=120).splitlines() if "a6000" in line)
    assert line.split() == ["a6000", "NVIDIA", "RTX", "A6000", "47.53", "GiB", "8.6", "84", "768", "GB/s"]


def test_environment_that_is_ready() -> None:
    """What is installed, and no advice where nothing is missing."""
    text = render_environment(READY, width=80)
    for fact in ("2.14.1+cu130", "13.0", "9.20.0", "580.65.06", "NVIDIA H100 80GB HBM3, 79.65 GiB"):
        assert fact in text
    assert "✓ The null GPU covers this torch" in text
    assert "To do" not in text


def test_environment_that_lacks_everything() -> None:
    """What is missing is named, and so is what to do."""
    bare = replace(
        READY,
        torch=None,
        driver=None,
        gpus=(),
        null_gpu=NullGpuState(ready=False, problem="torch is not installed"),
        advice=("Install PyTorch.",),
    )
    text = render_environment(bare, width=80, ascii_only=True)
    assert "torch      not installed" in text
    assert "x The null GPU: torch is not installed" in text
    assert "- Install PyTorch." in text

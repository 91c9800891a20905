"""torch.compile on the null GPU: Triton compiles for a device that is not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

OnNullGpu = Callable[..., Any]

TRAIN = """
import torch
from torch._dynamo.utils import counters
from torch._inductor import config
config.compile_threads = {threads}  # 1: in this process; more: in child processes
config.fx_graph_cache = False

layers = torch.nn.Linear(64, 128, bias=False), torch.nn.GELU(), torch.nn.Linear(128, 64, bias=False)
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
compiled = torch.compile(model, mode={mode!r})
x = torch.randn(1024, 64, device="cuda")

def step():
    compiled(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

allocated = []
for _ in range(4):
    step()
    torch.cuda.synchronize()
    allocated.append(torch.cuda.memory_allocated())
emit({{
    "frames": counters["frames"]["ok"],
    "breaks": len(counters["graph_break"]),
    "kernels": counters["inductor"]["async_compile_cache_miss"],
    "skipped_graphs": counters["inductor"]["cudagraph_skips"],
    "allocated": allocated,
    "parameters": sum(p.nbytes for p in model.parameters()),
    "input": x.nbytes,
}})
"""

CASES = [
    pytest.param("a100-40", None, 2, 8_519_680, id="a100 in child processes"),
    pytest.param("h100", "reduce-overhead", 1, 0, id="h100 with graphs"),  # their workspace lies in the graphs' pool
]


@pytest.mark.parametrize(("gpu", "mode", "threads", "workspace"), CASES)
def test_a_compiled_training_step_runs(
    on_null_gpu: OnNullGpu,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gpu: str,
    mode: str | None,
    threads: int,
    workspace: int,
) -> None:
    """Triton asks the driver for a target and loads what it built; between steps only what lives on is allocated."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    found = on_null_gpu(TRAIN.format(threads=threads, mode=mode), gpu)

    assert found["frames"] == 1
    assert found["breaks"] == 0
    assert found["kernels"] > 0
    assert found["skipped_graphs"] == 0
    assert found["allocated"][-1] == found["parameters"] + found["input"] + 2 * workspace

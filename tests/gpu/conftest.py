"""Runs every case on the null GPU, several at a time, while the tests run them one by one on the real one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pynvml
import pytest

from tests.gpu.compare import DATA, Comparison, null_environment, run_case, write_comparison

AT_ONCE = 4


def real_gpu() -> str:
    """Name of the first GPU as the driver reports it, "" where there is none."""
    try:
        pynvml.nvmlInit()
        return str(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)))
    except pynvml.NVMLError:
        return ""


@pytest.fixture(scope="session")
def gpu_name() -> str:
    """The real GPU; skips the test where there is none."""
    name = real_gpu()
    if not name:
        pytest.skip("no NVIDIA GPU on this machine")
    return name


@pytest.fixture(scope="session")
def comparison(gpu_name: str, request: pytest.FixtureRequest) -> Iterator[Comparison]:
    """Starts the null runs; when all tests are done, writes what was found (VRAMDOC_GPU_JSON names the file)."""
    environment = null_environment(gpu_name)
    tests = (item for item in request.session.items if isinstance(item, pytest.Function))
    selected = [test.callspec.params["case"] for test in tests if hasattr(test, "callspec")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = Comparison({case.name: pool.submit(run_case, case, environment) for case in selected})
        yield found
        done = {name: found.null(name) for name in found.real}
    if done:
        default = DATA / f"{gpu_name.lower().replace(' ', '-')}.json"
        write_comparison(Path(os.environ.get("VRAMDOC_GPU_JSON", default)), found.real, done)

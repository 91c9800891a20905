"""The null GPU against the GPU of this machine: ``pytest tests/gpu``, under four minutes, one JSON at the end."""

from __future__ import annotations

import os

import pytest

from tests.gpu.cases import CASES, Case
from tests.gpu.compare import Comparison, differences, run_case
from vramdoc import hardware


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_null_gpu_predicts_this_case(case: Case, comparison: Comparison) -> None:
    """The whole claim of vramdoc: the same program, the same torch, the same bytes."""
    comparison.real[case.name] = real = run_case(case, os.environ)
    assert differences(case, real, comparison.null(case.name)) == []


def test_the_tables_know_this_gpu(comparison: Comparison, gpu_name: str) -> None:
    """A wrong total or compute capability in the tables would move every prediction for this GPU."""
    real = next(iter(comparison.real.values()), None) or run_case(CASES[0], os.environ)
    gpu = hardware.find(gpu_name)
    assert real["gpu"] == {
        "name": gpu.name,
        "compute_capability": list(gpu.compute_capability),
        "multiprocessors": gpu.multiprocessors,
        "total_bytes": gpu.total_bytes,
    }

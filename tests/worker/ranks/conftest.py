"""Runs the programs of this folder, each in fresh processes on null GPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).resolve().parents[3]
Run = Callable[..., Any]


@pytest.fixture(scope="session")
def run_program(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """``run(name, *before, devices=1)``: runs ``programs/name RESULT`` and returns what it wrote to RESULT.

    ``before`` are arguments of the interpreter that come before the program: ``-m module ...``.
    """

    def run(name: str, *before: str, devices: int = 1) -> Any:
        from vramdoc import hardware, nullgpu
        from vramdoc.runner.devices import device_specs

        result = tmp_path_factory.mktemp("ranks") / "result.json"
        environment = nullgpu.environment(device_specs(hardware.find("a100-40"), devices))
        environment["PYTHONPATH"] = str(ROOT)
        done = subprocess.run(
            [sys.executable, *before, str(PROGRAMS / name), str(result)],
            env=environment, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return json.loads(result.read_text())

    return run

"""Fixtures shared by the suite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
_PRELUDE = """
import json as _json, os as _os
def emit(value):
    with open(_os.environ["VRAMDOC_TEST_RESULT"], "w") as stream:
        _json.dump(value, stream)
"""


@pytest.fixture
def on_null_gpu(tmp_path: Path) -> Callable[..., Any]:
    """Runs Python source in a fresh process on a null GPU and returns what it passed to ``emit``."""

    def run(code: str, gpu: str = "a100-40", *, limited: bool = True, count: int = 1, timeout: float = 300.0) -> Any:
        from vramdoc import hardware, nullgpu
        from vramdoc.runner.devices import device_specs

        result = tmp_path / "result.json"
        script = tmp_path / "script.py"
        script.write_text(_PRELUDE + code)
        environment = nullgpu.environment(device_specs(hardware.find(gpu), count), limited=limited)
        environment["VRAMDOC_TEST_RESULT"] = str(result)
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return json.loads(result.read_text())

    return run

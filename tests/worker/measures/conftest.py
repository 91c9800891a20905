"""One zygote on a null GPU for all tests of this folder, and pairs of runs written by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramdoc import hardware, nullgpu
from vramdoc.report.measurement import Choice, Measurement, Place, Request, Verification
from vramdoc.runner.devices import device_specs
from vramdoc.runner.process import Worker
from vramdoc.runner.progress import ignore

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


class Bench:
    """Measures targets of this folder on a null GPU."""

    def __init__(self, gpu: str, count: int = 1) -> None:
        specs = device_specs(hardware.find(gpu), count)
        self._place = Place(rank=0, world_size=count, local_size=count) if count > 1 else None
        build = nullgpu.torch_build()
        assert build is not None
        self._null_gpu = nullgpu.configuration(specs, build, limited=False)
        self.environment = nullgpu.environment(
            specs, limited=False, base={**os.environ, "PYTHONPATH": str(ROOT), "TORCH_CPP_LOG_LEVEL": "ERROR"}
        )
        self.worker = Worker(self.environment, null=True, listener=ignore)
        self._plain: dict[str, Measurement] = {}

    def measure(self, target: str | Path, *choices: Choice) -> Measurement:
        """The target with these measures applied; ``target`` is a file, or the name of one in ``targets``."""
        return self.worker.measure(self._request(target, choices))

    def verify(self, target: str | Path, *choices: Choice) -> Verification:
        """The target's gradients with and without them."""
        return self.worker.verify(self._request(target, choices, verify=True))

    def plain(self, target: str) -> Measurement:
        """The target as it is, measured once."""
        if target not in self._plain:
            self._plain[target] = self.measure(target)
        return self._plain[target]

    def _request(self, target: str | Path, choices: tuple[Choice, ...], *, verify: bool = False) -> Request:
        return Request(
            target=str(file_of(target)),
            null_gpu=self._null_gpu,
            measures=choices,
            place=self._place,
            verify=verify,
        )


def file_of(target: str | Path) -> Path:
    """The file of a target."""
    return target if isinstance(target, Path) else HERE / "targets" / f"{target}.py"


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    """On an A100 of 80 GB."""
    made = Bench("a100-80")
    yield made
    made.worker.close()


@pytest.fixture(scope="session")
def by_hand(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[int]]]:
    """Target -> variant -> allocated and reserved peak, of the programs in ``by_hand.py``."""
    result = tmp_path_factory.mktemp("by_hand") / "result.json"
    done = subprocess.run(
        [sys.executable, str(HERE / "by_hand.py"), str(result)],
        env=bench.environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, dict[str, list[int]]] = json.loads(result.read_text())
    return found

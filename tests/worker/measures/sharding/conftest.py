"""One zygote that measures the small target as any rank, and the same programs written by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramdoc import hardware, nullgpu
from vramdoc.report.measurement import Choice, Measurement, Place, Request
from vramdoc.runner.devices import device_specs
from vramdoc.runner.process import Worker
from vramdoc.runner.progress import ignore

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
GPU = "a100-80"


def environment(devices: int) -> dict[str, str]:
    base = {**os.environ, "PYTHONPATH": str(ROOT), "TORCH_CPP_LOG_LEVEL": "ERROR"}
    return nullgpu.environment(device_specs(hardware.find(GPU), devices), limited=False, base=base)


class Bench:
    """Measures targets as one rank of a world."""

    def __init__(self) -> None:
        self.worker = Worker(environment(1), null=True, listener=ignore)
        self._found: dict[str, Measurement] = {}

    def measure(
        self,
        names: str = "",
        *,
        rank: int = 0,
        size: int = 1,
        local_size: int | None = None,
        target: Path = HERE / "small.py",
        operations: bool = False,
        attributed: bool = False,
    ) -> Measurement:
        """``target`` with the measures in ``names``, joined by " + ", as ``rank`` of ``size``. Each is run once."""
        build = nullgpu.torch_build()
        assert build is not None
        local = local_size or size
        request = Request(
            target=str(target),
            null_gpu=nullgpu.configuration(device_specs(hardware.find(GPU), local), build, limited=False),
            measures=tuple(Choice(name=name) for name in names.split(" + ") if name),
            place=Place(rank=rank, world_size=size, local_size=local) if size > 1 else None,
            operations=operations,
            attributed=attributed,
        )
        if str(request) not in self._found:
            self._found[str(request)] = self.worker.measure(request)
        return self._found[str(request)]


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.worker.close()


@pytest.fixture(scope="session")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[int]]]:
    """Case -> rank -> allocated and reserved peak, of the real ranks in ``by_hand.py``."""
    result = tmp_path_factory.mktemp("sharding") / "result.json"
    done = subprocess.run(
        [sys.executable, str(HERE / "by_hand.py"), str(result)],
        env=environment(8), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, list[list[int]]] = json.loads(result.read_text())
    return found

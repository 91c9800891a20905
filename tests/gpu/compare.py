"""Runs cases in processes of their own, and says where the null GPU and a real one disagree. No torch here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tests.gpu.cases import BY_NAME, Case
from vramdoc import hardware, nullgpu
from vramdoc.runner.devices import device_specs

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data" / "gpu"
TIMEOUT = 180.0
_WANTED = re.compile(r"Tried to allocate [\d.]+ \w+\. GPU 0 has a total capacity of [\d.]+ \w+")


class Comparison:
    """Both results of the cases that ran so far; the null ones come from runs that go on beside."""

    def __init__(self, null: dict[str, Future[dict[str, Any]]]) -> None:
        self._null = null
        self.real: dict[str, dict[str, Any]] = {}

    def null(self, name: str) -> dict[str, Any]:
        return self._null[name].result()


def run_case(case: Case, environment: Mapping[str, str]) -> dict[str, Any]:
    """What program.py found on the GPU that ``environment`` gives it. Raises AssertionError with its stderr."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        # What one GPU's run compiled and tuned must not serve the other's.
        caches = {name: str(Path(folder) / name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
        done = subprocess.run(
            [sys.executable, str(HERE / "program.py"), case.name, str(result)],
            env={**environment, **caches, **case.environment},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, f"{case.name}: exit {done.returncode}\n{done.stderr[-4000:]}"
        found: dict[str, Any] = json.loads(result.read_text())
        return found


def null_environment(gpu_name: str) -> dict[str, str]:
    """The environment of a program on the null GPU of that kind; raises UnknownGpuError."""
    return nullgpu.environment(device_specs(hardware.find(gpu_name)))


def differences(case: Case, real: Mapping[str, Any], null: Mapping[str, Any]) -> list[str]:
    """Every figure on which the two disagree, one line each.

    An exact case must agree to the byte. Else cuDNN chose workspaces that only the real library knows: the
    peak may be off by the most that one operation took more, or less, on the real GPU. Reserved memory, in
    which a workspace changes what is cached, is then written down but not compared.
    """
    figures = ["after", "retries"] + (["allocated", "reserved"] if case.exact else [])
    found = [
        f"{case.name} {figure}: measured {real[figure]}, predicted {null[figure]}"
        for figure in figures
        if real[figure] != null[figure]
    ]
    if _out_of_memory(real) != _out_of_memory(null):
        found.append(f"{case.name}: measured {_out_of_memory(real)!r}, predicted {_out_of_memory(null)!r}")
    if not case.exact:
        bound = _workspace(real["workspaces"], null["workspaces"])
        for step, (measured, predicted) in enumerate(zip(real["allocated"], null["allocated"], strict=True)):
            if abs(measured - predicted) > bound:
                found.append(
                    f"{case.name} step {step}: measured {measured}, predicted {predicted}, "
                    f"further apart than the largest workspace, {bound}"
                )
    return found


def _workspace(real: Sequence[Mapping[str, Any]], null: Sequence[Mapping[str, Any]]) -> int:
    """The most by which one operation's own memory differs between the two runs."""

    def key(row: Mapping[str, Any]) -> str:
        return json.dumps([row["op"], row["tensors"], row["arguments"]])

    predicted = {key(row): row["bytes"] for row in null}
    return max((abs(row["bytes"] - predicted.get(key(row), 0)) for row in real), default=0)


def _out_of_memory(result: Mapping[str, Any]) -> str:
    """What was asked for, of what: what was free then depends on the size of the context, to a few MiB."""
    message: str = result["out_of_memory"]
    wanted = _WANTED.search(message)
    return wanted[0] if wanted else message


def write_comparison(path: Path, real: Mapping[str, Any], null: Mapping[str, Any]) -> None:
    """One JSON of both numbers of every case, a line each. All cases ran on one GPU with one torch."""
    first = next(iter(real.values()))
    about = {
        "gpu": first["gpu"],
        "versions": first["versions"],
        "context_bytes": max(result["context"] for result in real.values()),
    }
    pairs = {name: {"real": _figures(real[name]), "null": _figures(null[name])} for name in real}
    cases = [f"{json.dumps(name)}: {json.dumps(pair)}" for name, pair in pairs.items()]
    head = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in about.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + head + ' "cases": {\n  ' + ",\n  ".join(cases) + "\n }\n}\n")


def _figures(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in ("gpu", "versions")}


def held_cases(path: Path) -> list[Case]:
    """The cases that a committed comparison holds the null GPU to. Raises KeyError for one not in the table."""
    return [BY_NAME[name] for name in json.loads(path.read_text())["cases"]]


def disagreements(path: Path, case: Case) -> list[str]:
    """Runs ``case`` on the null GPU of the kind that ``path`` was measured on, and compares."""
    document = json.loads(path.read_text())
    build, measured_with = nullgpu.torch_build(), document["versions"]["torch"]
    if build is None or build.version != measured_with:
        return [f"{path.name} was measured with torch {measured_with}, this is {build}: measure again"]
    null = run_case(case, null_environment(document["gpu"]["name"]))
    return differences(case, document["cases"][case.name]["real"], null)

"""Holds the time model to published pairs of real GPUs, and records what it is held to.

``python -m tests.benchmarks.calibrate_time`` prints the model's error by kind of change. With ``--record`` it first
records the operations of every pair that can be reproduced on null GPUs into tests/data/timings_operations.json.gz
(some ten minutes; needs ``pip install timm transformers peft``); with ``--fit`` it fits the constants of
efficiencies.toml and prints them; with ``--leave-out`` it fits them without each kind of change in turn and prints
the error on the kind left out.
"""

from __future__ import annotations

import gzip
import json
import math
import pickle
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.advise.cost.calibration import COLUMNS, DATA, Outcome, by_kind, load, median_error, outcomes
from tests.benchmarks.time_calibration.fit import absolute_errors, fit, fit_errors, leave_out, with_constants
from vramdoc import hardware, nullgpu
from vramdoc.report.operations import Collective, Operation
from vramdoc.runner.devices import device_specs

_ROOT = Path(__file__).resolve().parents[2]
_STAND_INS = {"3080-ti-mobile": "3080-ti", "h100-96": "h100", "v100-16": "t4", "v100-32": "t4"}
"""GPUs that are not in the tables or that torch has no kernels for any more, and one that takes the same kernels."""
_PROCESSES = 2
_BUCKET_BYTES = 25 * 2**20  # DistributedDataParallel's default


def main(arguments: list[str]) -> int:
    """Runs what is asked for."""
    if "--record" in arguments:
        record()
    if "--fit" in arguments:
        constants = fit(load())
        print(json.dumps(constants | {"error": fit_errors(load(), with_constants(constants))}, indent=1))
    if "--leave-out" in arguments:
        for line in leave_out(load()):
            print(line, flush=True)
    print(table(outcomes(load())))
    absolute = statistics.median(abs(error) for error in absolute_errors(load()).values())
    print(f"time of a step by itself: median error {absolute:.1%}")
    return 0


def table(found: list[Outcome]) -> str:
    """The error by kind of change."""
    lines = [f"{'kind of change':24} {'pairs':>5} {'median':>7} {'worst':>7} {'in interval':>11}"]
    for kind, rows in [*by_kind(found).items(), ("all", found)]:
        worst = max(abs(row.error) for row in rows)
        held = sum(row.held for row in rows) / len(rows)
        lines.append(f"{kind:24} {len(rows):5} {median_error(rows):7.1%} {worst:7.1%} {held:11.0%}")
    return "\n".join(lines)


def record() -> None:
    """Records every recipe and writes the file."""
    from tests.benchmarks.time_calibration.pairs import all_pairs
    from tests.benchmarks.time_calibration.recipe import Recipe

    pairs = all_pairs()
    recipes = {side.recipe.key: side.recipe for pair in pairs.values() for side in (pair.before, pair.after)}
    groups: dict[str, list[Recipe]] = defaultdict(list)
    for recipe in recipes.values():
        groups[recipe.gpu].append(recipe)
    runs: dict[str, tuple[tuple[Operation, ...], int]] = {}
    with ThreadPoolExecutor(_PROCESSES) as pool:
        for gpu, made in zip(groups, pool.map(_record_on, groups, groups.values()), strict=True):
            print(f"{gpu}: {len(made)} of {len(groups[gpu])} steps recorded", flush=True)
            runs |= made
    write(pairs, runs)


def _record_on(gpu: str, recipes: list[Any]) -> dict[str, tuple[tuple[Operation, ...], int]]:
    environment = nullgpu.environment(device_specs(hardware.find(_STAND_INS.get(gpu, gpu)), 1), limited=False)
    with tempfile.TemporaryDirectory() as folder:
        asked, made = Path(folder, "recipes"), Path(folder, "runs")
        asked.write_bytes(pickle.dumps(recipes))
        subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.time_calibration.record", str(asked), str(made)],
            env=environment,
            cwd=_ROOT,
            check=True,
        )
        runs: dict[str, tuple[tuple[Operation, ...], int]] = pickle.loads(made.read_bytes())
    return runs


def write(pairs: dict[str, Any], runs: dict[str, tuple[tuple[Operation, ...], int]]) -> None:
    """The file of all pairs both of whose sides were recorded."""
    whole = {name: pair for name, pair in pairs.items() if all(s.recipe.key in runs for s in (pair.before, pair.after))}
    used = {side.recipe.key for pair in whole.values() for side in (pair.before, pair.after)}
    data = {
        "about": "Operations of one step of each run that reproduces a side of a pair in timings.json; "
        "made by tests/benchmarks/calibrate_time.py --record",
        "columns": COLUMNS,
        "runs": {key: {"rows": _rows(runs[key][0])} for key in sorted(used)},
        "pairs": {
            name: {
                "before": _side(pair.before, runs[pair.before.recipe.key][1]),
                "after": _side(pair.after, runs[pair.after.recipe.key][1]),
                "note": pair.note,
            }
            for name, pair in sorted(whole.items())
        },
    }
    text = json.dumps(data, separators=(",", ":"))
    (DATA / "timings_operations.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(whole)} of {len(pairs)} pairs recorded")


def _rows(operations: tuple[Operation, ...]) -> list[list[Any]]:
    """Rows as lists; those that differ in nothing that the model reads become one."""
    merged: dict[tuple[Any, ...], int] = defaultdict(int)
    for operation in operations:
        name = "" if operation.kind == "view" else operation.op.removeprefix("aten.")
        key = (name, *(getattr(operation, column) for column in COLUMNS[1:]))
        merged[key[:4] + key[5:]] += operation.count
    return [[*key[:4], count, *key[4:]] for key, count in merged.items()]


def _side(side: Any, gradient_bytes: int) -> dict[str, Any]:
    recipe = side.recipe
    return {
        "run": recipe.key,
        "gpu": recipe.gpu,
        "accumulate": side.accumulate,
        "samples": side.samples,
        "link": side.link,
        "node_link": side.node_link,
        "machine_links": side.per_machine,
        "collectives": [asdict(c) for c in _collectives(side, gradient_bytes)],
    }


def _collectives(side: Any, gradient_bytes: int) -> list[Collective]:
    """What joins the GPUs: DDP's buckets of gradients, or FSDP's blocks of bf16 parameters and gradients."""
    if side.gpus == 1:
        return []
    common = {"group_size": side.gpus, "group_span": math.ceil(side.gpus / side.per_machine)}
    if side.strategy == "ddp":
        buckets = math.ceil(gradient_bytes / _BUCKET_BYTES)
        size = gradient_bytes // buckets
        return [Collective(op="all_reduce", phase="backward", dtype="fp32", count=buckets, bytes=size, **common)]
    size = gradient_bytes // side.blocks
    gathered = ["forward", "backward"] if side.strategy == "fsdp" else ["forward"]
    return [
        *(
            Collective(op="all_gather", phase=phase, dtype="bf16", count=side.blocks, bytes=size, **common)
            for phase in gathered
        ),
        Collective(op="reduce_scatter", phase="backward", dtype="bf16", count=side.blocks, bytes=size, **common),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

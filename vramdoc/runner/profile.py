"""``profile``: which runs a report takes, and in which order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from vramdoc import assumptions, hardware, nullgpu, target
from vramdoc.errors import TargetError, UsageError
from vramdoc.report import Device, Report
from vramdoc.report.measurement import Measurement, Request
from vramdoc.runner import real
from vramdoc.runner.assemble import Runs, assemble
from vramdoc.runner.devices import device_specs
from vramdoc.runner.process import Worker
from vramdoc.runner.progress import Listener, Progress, ignore

DEFAULT_GPU = "a100-80"
"""The null GPU where none was named and the machine has none; the report says so."""

MeasureOne = Callable[[Request], Measurement]


def profile(
    path: str | os.PathLike[str],
    *,
    gpu: str | None = None,
    batch_size: int | None = None,
    steps: int | None = None,
    timeout: float = 600.0,
    assume: Mapping[str, str] | None = None,
    progress: Listener | None = None,
) -> Report:
    """Profiles the target at ``path`` and returns its :class:`Report`.

    ``gpu`` names a GPU to predict for, on the null GPU. Without it a real GPU is measured if there is one, else
    :data:`DEFAULT_GPU` is predicted. ``batch_size`` and ``steps`` override the target's own; ``timeout`` is in
    seconds, for each run; ``assume`` sets rules for unknown values (see :mod:`vramdoc.assumptions`); ``progress`` is
    told what is being done. Raises an error of :mod:`vramdoc.errors`.
    """
    for name, value in (("batch size", batch_size), ("steps", steps), ("timeout", timeout)):
        if value is not None and value <= 0:
            raise UsageError(f"{name} is {value}", hint=f"give a {name} of at least 1")
    file = target.locate(path)
    listener = progress or ignore
    request = Request(target=str(file), batch_size=batch_size, steps=steps, timeout=timeout)
    notes: list[str] = []
    if gpu is None:
        if real.gpu_count():
            return _on_real_gpu(str(path), request, listener)
        gpu = DEFAULT_GPU
        notes.append(f"no GPU in this machine: predicted for {hardware.find(gpu).name} (choose one with --gpu)")
    return _on_null_gpu(str(path), request, hardware.find(gpu), dict(assume or {}), notes, listener)


def _on_null_gpu(
    name: str,
    request: Request,
    gpu: hardware.Gpu,
    assume: dict[str, str],
    notes: list[str],
    listener: Listener,
) -> Report:
    listener(Progress(stage="starting torch"))
    environment = nullgpu.environment(device_specs(gpu), limited=False, base=worker_environment())
    with Worker(environment, null=True, listener=listener) as worker:
        return predict(name, request, gpu, worker.measure, assume=assume, notes=notes)[0]


def predict(
    name: str,
    request: Request,
    gpu: hardware.Gpu,
    measure: MeasureOne,
    *,
    assume: dict[str, str],
    notes: list[str],
) -> tuple[Report, Runs, Request]:
    """The report of ``request`` on a null ``gpu``, the runs it is made of, and the request that others may repeat.

    ``measure`` runs a request in a worker on such a GPU. Raises what it raises.
    """
    specs, build = device_specs(gpu), nullgpu.torch_build()
    assert build is not None, "there is a worker"
    unlimited, limited = (nullgpu.configuration(specs, build, limited=limit) for limit in (False, True))
    request, plain = _plain(measure, replace(request, null_gpu=unlimited), assume)
    context, measured = hardware.context_or_estimate(gpu)
    over = plain.peak_reserved_bytes + context > gpu.total_bytes
    runs = Runs(
        plain=plain,
        attributed=measure(replace(request, attributed=True, operations=False, steps=plain.steps)),
        limited=measure(replace(request, null_gpu=limited, operations=False)) if over else None,
        alternatives=_alternatives(measure, replace(request, operations=False), plain),
    )
    device = Device(
        name=gpu.name,
        kind="null",
        total_bytes=gpu.total_bytes,
        compute_capability=".".join(map(str, gpu.compute_capability)),
    )
    runs = replace(runs, plain=replace(runs.plain, device=device))
    report = assemble(name, runs, context_bytes=context, context_estimated=not measured, notes=notes)
    return report, runs, request


def _plain(measure: MeasureOne, request: Request, assume: dict[str, str]) -> tuple[Request, Measurement]:
    """The run that gives the figures, and the request that the others repeat.

    First without host shadows, which cost time. They are switched on where the run read values that nobody knew,
    also where it failed: a guard against infinite losses raises on the zeros that it was told.
    """
    try:
        plain = measure(request)
    except TargetError as error:
        if not error.unknown_reads:
            raise
    else:
        if not plain.unknown_reads:
            return request, plain
    request = replace(request, assume=assume)
    return request, measure(request)


def _alternatives(measure: MeasureOne, request: Request, plain: Measurement) -> tuple[Measurement, ...]:
    """The same run under the other choices of the rules that stood in for unknown values.

    One that fails is left out: a program may refuse a choice that it never meets.
    """
    found = []
    for choice in assumptions.alternatives(plain.assumptions, request.assume or {}) or ():
        with suppress(TargetError):
            found.append(measure(replace(request, assume=choice)))
    return tuple(found)


def _on_real_gpu(name: str, request: Request, listener: Listener) -> Report:
    measured: list[Measurement] = []
    for attributed in (False, True):
        listener(Progress(stage="starting torch"))
        with Worker(worker_environment(), null=False, listener=listener) as worker:
            measured.append(worker.measure(replace(request, attributed=attributed)))
    plain, second = measured
    return assemble(name, Runs(plain=plain, attributed=second), context_bytes=plain.context_bytes, notes=[])


def worker_environment() -> dict[str, str]:
    """This process's environment, with this very vramdoc first on the worker's path."""
    ours = str(Path(__file__).resolve().parent.parent.parent)
    inherited = os.environ.get("PYTHONPATH")
    return {
        # torch logs each refused allocation; here a refusal is a result, and the report says it.
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [ours, inherited])),
        "PYTHONUNBUFFERED": "1",
    }

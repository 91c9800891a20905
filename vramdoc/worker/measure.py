"""One measurement: build the target, run whole steps until the peak repeats, read the allocator."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vramdoc import nullgpu
from vramdoc.errors import MeasureError, UsageError
from vramdoc.report import Device
from vramdoc.report.measurement import (
    Applied,
    Attributed,
    Measurement,
    OutOfMemory,
    Place,
    RepeatedBlocks,
    Request,
)
from vramdoc.report.operations import Collective, Operation
from vramdoc.worker import load, measures, userland
from vramdoc.worker.attribution import attribute, relative
from vramdoc.worker.blocks import find_blocks
from vramdoc.worker.initialisers import SkipInitialisers
from vramdoc.worker.operations import OperationRecorder
from vramdoc.worker.phases import PhaseTracker, alloc_retries
from vramdoc.worker.ranks import World, install
from vramdoc.worker.recording import Recorder, tensors_in
from vramdoc.worker.training import Training, split, to_device
from vramdoc.worker.values import ValueShadow
from vramdoc.worker.versions import versions

LEAST_STEPS = 3
"""The first step makes the optimizer's state, the second is the first with all of it, the third shows a repeat."""
MOST_STEPS = 8

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class _Run:
    """The state of one measurement while it goes on."""

    request: Request
    progress: Progress
    phases: PhaseTracker
    recorder: Recorder | None
    training: Training | None = None
    blocks: RepeatedBlocks | None = None
    seconds: list[float] = field(default_factory=list)
    warm_up: int = 0
    operations: tuple[Operation, ...] = ()
    collectives: tuple[Collective, ...] = ()
    retries: int | None = None  # these two as they stood before operations were recorded; None: nothing was
    unknown_reads: int | None = None


def measure(request: Request, *, null: bool, progress: Progress) -> Measurement:
    """Runs ``request`` in this process, which must be fresh. Raises the user's failures as ``TargetError``."""
    if request.place is not None:
        _take_place(request.place)
    path = Path(request.target)
    torch.manual_seed(0)
    recorder = Recorder() if request.attributed else None
    run = _Run(
        request=request,
        progress=progress,
        phases=PhaseTracker(on_enter=recorder.enter_phase if recorder else None),
        recorder=recorder,
    )
    context_bytes = None if null else _start_context()
    shadow = ValueShadow(request.assume) if request.assume is not None else None
    out_of_memory = None
    with ExitStack() as stack:
        if shadow:
            stack.enter_context(shadow)
        if recorder:
            stack.enter_context(recorder)
        try:
            _train(run, path, null=null)
        except torch.cuda.OutOfMemoryError as error:
            out_of_memory = OutOfMemory(message=str(error), phase=run.phases.phase, step=run.phases.step)
            run.phases.close()
    return _result(run, path, context_bytes, shadow, out_of_memory, null=null)


def _take_place(place: Place) -> None:
    """Makes this process the rank at ``place``, on its own of the null GPUs of its machine.

    Raises :class:`MeasureError` where there is no such place.
    """
    try:
        world = World(rank=place.rank, size=place.world_size, local_size=place.local_size)
    except UsageError as error:
        raise MeasureError(error.message, hint=error.hint) from None
    if torch.cuda.device_count() < world.local_size:
        raise MeasureError(f"{world.local_size} ranks on a machine of {torch.cuda.device_count()} GPUs")
    install(world)
    torch.cuda.set_device(world.local_rank)


def _start_context() -> int:
    """Starts CUDA on a real GPU; the bytes that the context took."""
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(torch.cuda._get_nvml_device_index(0))
    before: int = pynvml.nvmlDeviceGetMemoryInfo(handle).used
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    after: int = pynvml.nvmlDeviceGetMemoryInfo(handle).used
    return after - before - torch.cuda.memory_reserved()


def _train(run: _Run, path: Path, *, null: bool) -> None:
    with ExitStack() as stack:
        if null:
            stack.enter_context(SkipInitialisers())
        run.training = training = Training.of(load.load(path), run.request.batch_size, null=null)
        measures.apply(training, run.request.measures)
        run.progress("building the model", 0, 0)
        model = load.check_model(userland.call("build_model()", training.build))
    found = find_blocks(model)
    run.blocks = found.facts() if found else None
    model = userland.call("moving the model to the GPU", training.place, model)
    if run.recorder:
        run.recorder.know_model(model)
    optimizer = userland.call("make_optimizer()", training.make_optimizer, model)
    watch = [
        model.register_forward_pre_hook(lambda *_: run.phases.enter("forward")),
        model.register_forward_hook(lambda *_: run.phases.enter("loss")),
    ]
    most = run.request.steps or MOST_STEPS
    for step in range(most):
        run.progress("running steps", step, run.request.steps or LEAST_STEPS)
        started = time.perf_counter()
        _step(run, training, model, optimizer, step)
        if not null:
            torch.cuda.synchronize()
        run.seconds.append(time.perf_counter() - started)
        run.phases.close()
        if run.request.steps is None and _has_settled(run, step):
            break
    if run.request.operations:
        _record_operations(run, training, model, optimizer, null=null)
    for hook in watch:
        hook.remove()


def _record_operations(
    run: _Run, training: Training, model: nn.Module, optimizer: torch.optim.Optimizer, *, null: bool
) -> None:
    """One more step, of which nothing but its operations is read."""
    run.retries = alloc_retries()
    run.unknown_reads = nullgpu.counters().unknown_reads if null else 0
    kept, run.phases = run.phases, PhaseTracker()
    step = kept.step + 1
    if run.recorder:
        run.recorder.enter_phase("forward", step)  # what it sees from here on belongs to no step that is read
    operations = OperationRecorder(lambda: run.phases.phase)
    try:
        _watched_step(run, training, model, optimizer, step, operations)
        run.operations, run.collectives = operations.operations(), operations.collectives()
    except torch.cuda.OutOfMemoryError:
        pass  # a step that just fits may not while it is watched: its peak stands, its operations stay unknown
    finally:
        run.phases = kept


def _step(run: _Run, training: Training, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    """One whole training step, as a plain training loop writes it."""
    variables = _Variables()
    for part in _parts(run, training, step):
        _accumulate(run, training, model, part, variables)
    _update(run, training, model, optimizer)


def _watched_step(
    run: _Run,
    training: Training,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: int,
    operations: OperationRecorder,
) -> None:
    """A step whose operations are recorded; of many micro-batches one stands for all.

    It is the second: the first makes the gradients, each later one adds to them. They differ by one sample at most.
    """
    parts, variables = _parts(run, training, step), _Variables()
    if len(parts) > 1:
        _accumulate(run, training, model, parts[0], variables)
    with operations:
        operations.times = len(parts)
        _accumulate(run, training, model, parts[min(1, len(parts) - 1)], variables)
        operations.times = 1
        _update(run, training, model, optimizer)


def _parts(run: _Run, training: Training, step: int) -> list[Any]:
    run.phases.enter("forward", step)
    whole = userland.call(f"make_batch({training.batch_size})", training.make_batch, training.batch_size)
    return split(whole, training.micro_batches)


@dataclass(slots=True)
class _Variables:
    """What the variables of a training loop hold: each lives until it is set again, the last ones through the step."""

    batch: Any = None
    loss: torch.Tensor | None = None


def _accumulate(run: _Run, training: Training, model: nn.Module, part: Any, variables: _Variables) -> None:
    """Forward and backward of one micro-batch."""
    run.phases.enter("forward")
    variables.batch = userland.call("moving the batch to the GPU", to_device, part)
    if run.recorder:
        run.recorder.mark("inputs", "", tensors_in(variables.batch))
    variables.loss = load.check_loss(userland.call("compute_loss()", training.compute_loss, model, variables.batch))
    run.phases.enter("backward")
    userland.call("backward()", training.backward, variables.loss)


def _update(run: _Run, training: Training, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    run.phases.enter("optimizer")
    userland.call("optimizer.step()", training.update, optimizer)
    if run.recorder:
        run.recorder.know_optimizer(model, optimizer)
    run.phases.enter("after_step")
    userland.call("optimizer.zero_grad()", training.clear, optimizer)


def _has_settled(run: _Run, step: int) -> bool:
    if _tuned():
        run.warm_up = 1
    return step + 1 >= LEAST_STEPS + run.warm_up and run.phases.step_peak(step) == run.phases.step_peak(step - 1)


def _tuned() -> bool:
    """Whether a tuner may have tried kernels in the first step: its trial buffers are not part of a step."""
    return bool(torch.backends.cudnn.benchmark) or "torch._inductor.compile_fx" in sys.modules


def _result(
    run: _Run,
    path: Path,
    context_bytes: int | None,
    shadow: ValueShadow | None,
    out_of_memory: OutOfMemory | None,
    *,
    null: bool,
) -> Measurement:
    phases = run.phases
    steps = phases.step + 1
    counted = range(min(run.warm_up, steps - 1), steps)
    peak_step = max(counted, key=phases.step_peak)
    finished = steps if out_of_memory is None else steps - 1
    attributed: Attributed | None = None
    if run.recorder:
        run.progress("reading the recording", 0, 0)
        attributed = attribute(run.recorder.recording, step=peak_step, root=path.parent)
    unknown_reads = run.unknown_reads
    if unknown_reads is None:
        unknown_reads = nullgpu.counters().unknown_reads if null else 0
    return Measurement(
        device=_device(),
        versions=versions(),
        batch_size=run.training.batch_size if run.training else 0,
        steps=finished,
        settled=finished >= 2 and phases.step_peak(finished - 1) == phases.step_peak(finished - 2),
        peak_allocated_bytes=phases.step_peak(peak_step),
        peak_reserved_bytes=max(phases.reserved[step] for step in counted),
        peak_phase=phases.peak_phase(peak_step),
        peak_step=peak_step,
        phases=phases.step_phases(peak_step),
        growth_bytes_per_step=phases.step_end(finished - 1) - phases.step_end(finished - 2) if finished > 2 else 0,
        alloc_retries=alloc_retries() if run.retries is None else run.retries,
        context_bytes=context_bytes,
        unknown_reads=unknown_reads,
        operations=run.operations,
        collectives=run.collectives,
        warm_up_steps=counted.start,
        out_of_memory=out_of_memory,
        attributed=attributed,
        warnings=tuple(run.training.notes) if run.training else (),
        applied=tuple(Applied(name=name, code=code) for name, code in run.training.applied.items())
        if run.training
        else (),
        blocks=run.blocks,
        assumptions=tuple(
            replace(assumption, file=relative(assumption.file, path.parent))
            for assumption in (shadow.assumptions() if shadow else ())
        ),
        step_seconds=None if null else statistics.median(run.seconds[1:] or run.seconds or [0.0]),
    )


def _device() -> Device:
    properties = torch.cuda.get_device_properties(0)
    return Device(
        name=properties.name,
        kind="real",
        total_bytes=properties.total_memory,
        compute_capability=f"{properties.major}.{properties.minor}",
        count=torch.cuda.device_count(),
    )

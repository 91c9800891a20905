"""What one run of a target in a worker found, and what was asked of it: the words of parent and worker.

Both travel as one JSON line each; sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vramdoc.report.model import Assumption, Block, Device, LineRow, ModuleRow, Phase, TimelinePoint
from vramdoc.report.operations import Collective, Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One change to a training loop: a measure by name, and how far it goes."""

    name: str
    options: dict[str, int | float | str | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The process as one rank of a world."""

    rank: int
    world_size: int
    local_size: int  # ranks on one machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One run of a target."""

    target: str  # absolute path of the file
    batch_size: int | None = None  # None: the target's own
    steps: int | None = None  # None: until the peak repeats
    attributed: bool = False  # record what each block is; False: nothing is hooked
    operations: bool = False  # record what one more step asks of the GPU, after the peak has settled
    null_gpu: str | None = None  # the null GPU's configuration; None: the machine's own GPU
    measures: tuple[Choice, ...] = ()  # changes to the training loop, applied in order
    place: Place | None = None  # None: one GPU, no process group
    assume: dict[str, str] | None = None  # rules for unknown values; None: no host shadows
    verify: bool = False  # instead of measuring, run a small copy on the host with and without the measures
    timeout: float = 600.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A choice as it was applied to the target."""

    name: str
    code: str  # what ran: appended to the target's file, it does the same


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedBlocks:
    """The blocks that a model repeats."""

    class_name: str
    count: int
    code: str  # an expression over ``model`` that gives them in order


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A step on the host with and without the measures, on a copy made small: are the gradients the same?"""

    largest_difference: float  # between gradients, and between parameters after two steps
    largest_value: float  # among those compared
    tensors: int  # how many were compared
    copy: str  # what ran, in words: "2 of 12 Block, 4 samples, float64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """Where the peak's bytes are; requested bytes, so that the categories sum to less than the peak."""

    categories: dict[str, int]
    modules: tuple[ModuleRow, ...]
    lines: tuple[LineRow, ...]
    largest: tuple[Block, ...]
    timeline: tuple[TimelinePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """Where a run ended because the device was full."""

    message: str  # torch's own
    phase: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one run found."""

    device: Device
    versions: dict[str, str]
    batch_size: int
    steps: int
    settled: bool  # the peak repeated before the last step allowed
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    peak_phase: str
    peak_step: int
    phases: tuple[Phase, ...]  # of the step that holds the peak
    growth_bytes_per_step: int
    alloc_retries: int
    context_bytes: int | None
    unknown_reads: int = 0  # small device reads that no upload answers (null GPU)
    warm_up_steps: int = 0  # steps left out because trial buffers of a tuner may have been in them
    out_of_memory: OutOfMemory | None = None
    attributed: Attributed | None = None
    operations: tuple[Operation, ...] = ()  # of one step, where they were asked for
    collectives: tuple[Collective, ...] = ()  # the same, of this rank
    assumptions: tuple[Assumption, ...] = ()
    warnings: tuple[str, ...] = ()
    applied: tuple[Applied, ...] = ()  # the request's measures, in its order
    blocks: RepeatedBlocks | None = None  # None: nothing in the model repeats
    step_seconds: float | None = None  # median; real GPU only


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run gave no measurement."""

    kind: str  # "target", "timeout", "install", "measure" or "bug": which error the parent raises
    message: str
    hint: str = ""
    traceback: str = ""  # the user's own, trimmed to their code
    unknown_reads: int = 0  # as in Measurement, until it failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One line from the worker. Exactly one of the optional fields is set, or only ``event``."""

    event: str  # "ready", "progress", "measured", "verified", "failed" or "died"
    stage: str = ""  # progress: what is being done
    done: int = 0
    total: int = 0
    status: int = 0  # died: what waitpid gave as exit code, negative for a signal
    measurement: Measurement | None = None
    verification: Verification | None = None
    failure: Failure | None = None

"""What ``vramdoc advise`` found, as values and their versioned JSON. Sizes are bytes, times seconds.

Every figure names the run that it comes from; ``runs`` holds each of those with its whole measurement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from vramdoc.errors import ReportError
from vramdoc.report.measurement import Choice, Measurement, Place
from vramdoc.report.model import Report

ADVICE_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Time for a sample over that of the target as it is: above 1 is slower. The range is the model's own."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """The time of one whole step of one rank."""

    seconds: float
    low: float
    high: float
    exposed_communication_seconds: float = 0.0  # of collectives, what no computation hides
    parts: dict[str, float] = field(default_factory=dict)  # adds up to ``seconds``, as in advise.cost.TimeEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRun:
    """One run that a figure rests on."""

    id: str  # "r12"
    choices: tuple[Choice, ...]  # in the order they were applied
    batch_size: int | None  # that was asked for, on each GPU; None: the target's own
    place: Place | None
    measurement: Measurement | None
    error: str = ""  # why there is no measurement
    time: StepTime | None = None  # modelled; None where the model had nothing to go by
    real_seconds: float | None = None  # of a step on this machine's own GPU, with --measure-time


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a plan has to fit into."""

    allowed_bytes: int  # the reserved peak may be at most this
    total_bytes: int  # of the GPU
    context_bytes: int  # outside the allocator
    context_estimated: bool
    budget_bytes: int | None  # the user's own limit on the reserved peak, instead of what the GPU has
    margin: float  # share of the limit that stays free: 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestBatch:
    """The largest batch, on each GPU, that fits."""

    size: int  # 0: not even one sample fits
    reserved_bytes: int  # with it; 0 where none fits
    run: str  # "" where none fits
    at_least: bool = False  # the search ended before anything was too large


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One measure alone."""

    choice: Choice
    title: str
    tier: str
    allowed: bool  # the user's leave covers it
    change: str  # what to do, one sentence
    cost: str
    risks: tuple[str, ...]
    run: str  # of the run with it
    allocated_bytes: int | None  # None where it could not be measured
    reserved_bytes: int | None
    saved_bytes: int  # of the reserved peak; negative where it takes more
    time: Ratio | None
    reason: str  # why it saves nothing or cannot be used, "" where it saves
    code: str  # appended to the target's file, it does what was measured


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One change of a plan, with the peak once it and those before it have been made."""

    choice: Choice
    title: str
    tier: str
    reserved_bytes: int | None  # None where this far was not measured
    time: Ratio | None  # likewise with those before it
    run: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Changes taken together."""

    label: str  # "fastest that fits", "smallest", "between"
    run: str
    batch_size: int  # on each GPU
    gpus: int
    allocated_bytes: int
    reserved_bytes: int
    fits: bool  # within the room, margin included
    time: Ratio | None
    largest_batch: LargestBatch | None
    steps: tuple[PlanStep, ...]
    notes: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """All steps: appended to the target's file, they do what was measured."""
        return "\n\n".join(step.code.strip() for step in self.steps if step.code) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPeak:
    """The peak of one rank."""

    rank: int
    allocated_bytes: int
    reserved_bytes: int
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One strategy on one number of GPUs."""

    gpus: int
    nodes: int
    title: str  # "ZeRO-3, bf16 autocast"
    choices: tuple[Choice, ...]
    ranks: tuple[RankPeak, ...]  # the first, and the last where its peak is another; () where it failed
    fits: bool
    communication_bytes: int  # that one rank sends in a step
    exposed_seconds: float | None  # of a step, waiting for the link
    step_seconds: float | None
    speed: float | None  # samples in a second over one GPU's as it is
    link: str  # name of the slowest link that is used
    warning: str = ""
    reason: str = ""  # why it could not be measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Why no plan fits, and what would do. It rests on reserved bytes that were measured."""

    run: str  # of the smallest plan
    reserved_bytes: int
    short_bytes: int
    filled_by: dict[str, int]  # category -> bytes at its peak, largest first
    gpu: str = ""  # short name of the smallest listed GPU with room; "" where none has
    gpu_name: str = ""
    gpus: int | None = None  # the smallest number of these GPUs that was measured to do
    gpus_run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run of the front: nothing measured is both smaller and faster."""

    run: str
    reserved_bytes: int
    time: Ratio | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A measure's gradients with and without it, on the host."""

    name: str
    largest_difference: float | None  # None where it could not be run
    largest_value: float
    copy: str
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceReport:
    """Everything that a renderer of advice sees."""

    schema_version: int = ADVICE_SCHEMA_VERSION
    kind: Literal["advice"] = "advice"
    vramdoc_version: str
    created: str  # ISO 8601, UTC
    target: str  # the file as the user gave it
    gpu: str  # short name
    gpus: int  # that may be used
    allow: tuple[str, ...]  # tiers and single measures that plans may take
    base: Report  # the target as it is
    base_run: str
    base_time: StepTime | None
    room: Room
    state_bytes: int  # of the base's peak: parameters, gradients, optimizer state, buffers
    activation_bytes: int  # of the base's peak: what grows with the batch
    largest_batch: LargestBatch | None
    effects: tuple[Effect, ...]  # by bytes saved, largest first
    plans: tuple[Plan, ...]  # fastest first
    front: tuple[Point, ...]
    ways: tuple[Way, ...]
    shortage: Shortage | None
    proofs: tuple[Proof, ...]
    runs: tuple[AdviceRun, ...]
    measured: int  # candidates in all, those of the cache included
    cached: int  # of these, answered by the cache
    seconds: float  # wall time
    interrupted: bool  # the search was cut short: this is the best so far
    notes: tuple[str, ...] = ()
    flags: str = ""  # of the command line that asks the same, but for --allow
    allow_flag: str = ""  # "--allow speed", "" where the default was taken

    def run(self, name: str) -> AdviceRun:
        """The run called ``name``; raises KeyError."""
        return {run.id: run for run in self.runs}[name]


def encode_advice(report: AdviceReport) -> str:
    """``report`` as indented JSON, one trailing newline."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n"


def decode_advice(text: str | bytes, *, source: str = "report") -> AdviceReport:
    """The report in ``text``; ``source`` names it in errors. Raises :class:`ReportError`."""
    try:
        report = msgspec.json.decode(text, type=AdviceReport)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReportError(f"{source} is not advice of vramdoc: {error}") from None
    if report.schema_version != ADVICE_SCHEMA_VERSION:
        raise ReportError(
            f"{source} has schema version {report.schema_version}; this vramdoc reads {ADVICE_SCHEMA_VERSION}",
            hint="run vramdoc advise again",
        )
    return report

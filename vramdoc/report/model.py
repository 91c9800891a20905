"""What a measurement found, as values. Sizes are bytes, times seconds, unless a name says otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCHEMA_VERSION = 1

CATEGORIES = (
    "parameters",
    "gradients",
    "optimizer_state",
    "activations",
    "autocast_cache",
    "buffers",
    "inputs",
    "communication",
    "optimizer_temporaries",
    "temporaries",
    "workspace",
    "rounding",
)
PHASES = ("load", "forward", "loss", "backward", "optimizer", "after_step")

Category = str
"""One of :data:`CATEGORIES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    name: str  # as CUDA reports it
    kind: Literal["null", "real"]
    total_bytes: int  # as CUDA reports it
    compute_capability: str  # "9.0"
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The highest moment of the plain pass, without a memory limit on a null GPU."""

    allocated_bytes: int  # torch.cuda.max_memory_allocated
    reserved_bytes: int  # torch.cuda.max_memory_reserved
    context_bytes: int | None  # outside the allocator; None where it is not known
    context_estimated: bool = False  # not measured on this kind of GPU, but taken from another
    phase: str  # one of PHASES
    step: int  # counted from 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase of the step that holds the peak (``load``: of the process)."""

    name: str  # one of PHASES
    peak_bytes: int  # highest allocated within it
    end_bytes: int  # allocated when it ended


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleRow:
    """What one module holds at the peak, its children's share included."""

    name: str  # qualified name; "" is the model itself
    class_name: str
    parameter_bytes: int
    gradient_bytes: int
    optimizer_state_bytes: int
    activation_bytes: int
    other_bytes: int  # every other category
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """What one source line of the user's code holds at the peak (blocks allocated from it)."""

    file: str  # relative to the target's folder where it lies below it
    line: int
    function: str
    code: str  # the line's text, stripped; "" where the source is not to be had
    bytes: int
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One live allocation at the peak."""

    bytes: int  # requested
    category: Category
    phase: str  # when it was allocated
    op: str  # "aten.mm"; "" where no operation was running
    module: str  # qualified name; "" where outside the model
    file: str  # "" where unknown
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePoint:
    """Allocated bytes by category at one moment of the step that holds the peak."""

    phase: str
    allocated_bytes: int
    categories: dict[Category, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """How well the attributed pass agrees with the plain one."""

    allocated_bytes: int  # the attributed pass's own peak
    agrees: bool  # within 0.1 % of the plain peak


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """The same run with the GPU's memory limit: only made where the unlimited peak is over it."""

    completed: bool
    alloc_retries: int  # torch's num_alloc_retries: frees of cached memory to make room
    reserved_bytes: int
    out_of_memory: str  # torch's own message, "" where it completed
    phase: str  # where memory ran out, "" where it completed


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A value that the step read back from the device, that did not derive from host data."""

    op: str  # "aten.nonzero"
    file: str
    line: int
    rule: str  # name of the rule that stood in for it
    reads: int  # how often in one run


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What the figures rest on: ``exact`` where no unknown value steered the run."""

    exact: bool
    shadowed: bool  # whether the run was made with host shadows
    assumptions: tuple[Assumption, ...] = ()
    low_bytes: int | None = None  # allocated peak over the alternatives of the rules that matter
    high_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One profile: everything a renderer sees."""

    schema_version: int = SCHEMA_VERSION
    vramdoc_version: str
    created: str  # ISO 8601, UTC
    target: str  # the file as the user gave it
    device: Device
    versions: dict[str, str]  # torch, cuda, cudnn, python, driver ...
    batch_size: int
    steps: int  # whole steps that were run
    peak: Peak
    categories: dict[Category, int]  # sums to peak.allocated_bytes exactly, every category present
    phases: tuple[Phase, ...]
    growth_bytes_per_step: int  # allocated after the last step less after the one before
    modules: tuple[ModuleRow, ...]
    lines: tuple[LineRow, ...]  # largest first
    largest: tuple[Block, ...]  # largest first
    timeline: tuple[TimelinePoint, ...]
    attribution: Attribution
    values: Values
    fits: bool  # the step completes within the GPU
    alloc_retries: int
    limited: Limited | None = None
    warnings: tuple[str, ...] = ()
    step_seconds: float | None = None  # median, real GPU only

    @property
    def device_bytes(self) -> int:
        """What the GPU must have: reserved plus context."""
        return self.peak.reserved_bytes + (self.peak.context_bytes or 0)

    @property
    def spare_bytes(self) -> int:
        """What is left of the GPU at the peak; negative where it is short."""
        return self.device.total_bytes - self.device_bytes

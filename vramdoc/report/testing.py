"""One test on a null GPU: what a pytest process asks of the process that runs it, and what comes back.

Both travel as one JSON line each; sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a test is held to, and on which GPU."""

    gpu: str  # short name from the tables
    metric: Literal["allocated", "reserved", "device"]
    context_bytes: int  # outside the allocator; counts for the metric "device" alone
    limit_bytes: int | None = None  # on the peak of the call phase; None: no limit
    growth_limit_bytes: int | None = None  # on what each step leaves behind; None: no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a test's call phase took; what its fixtures hold counts as far as it is alive then."""

    peak_allocated_bytes: int
    peak_reserved_bytes: int
    steps: int  # counted by optimizer steps, or by `with vram.step()`
    growth_bytes: int | None  # each step from the third on left behind, on average; None: fewer than three steps
    unknown_reads: int  # small device reads that no upload answers
    over: bool = False  # a limit was broken, or memory ran out
    categories: dict[str, int] | None = None  # at the peak, adding up to it; None: the run was not attributed
    explanation: str = ""  # the peak in words: phases, categories, modules, lines; "" as above


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageOptions:
    """How the process that asks measures coverage: options of coverage.py by name."""

    data_file: str
    options: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run of one test."""

    nodeid: str
    null_gpu: str  # the null GPU's configuration
    terms: Terms
    attributed: bool  # record what each block is; False: nothing is hooked
    shadowed: bool = False  # answer device reads from host shadows
    coverage: CoverageOptions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The first line to a new process: how to collect the tests as the asking process did."""

    arguments: tuple[str, ...]  # pytest's
    files: tuple[str, ...]  # absolute, with the tests that may be asked for
    path: tuple[str, ...]  # sys.path
    python_path: str  # the variable, for what the tests start
    basetemp: str | None  # an existing folder for temporary files
    live_output: bool  # tests print directly (pytest -s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """A Python warning that the test caused."""

    category: str  # name of the class, with its module
    message: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One line back. ``done`` or ``problem`` ends an order; the rest comes before it."""

    ready: bool = False
    exclusive: bool = False  # ready, for one order only: test modules use CUDA at import, and no fork could after it
    report: dict[str, Any] | None = None  # pytest's own serialised report of one phase
    warned: Warned | None = None
    figures: Figures | None = None
    done: bool = False
    problem: str = ""  # why the test could not be run, or how its process died

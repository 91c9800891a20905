"""What checks found, as values for renderers and callers. Sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vramdoc.errors import VramdocError

Metric = Literal["allocated", "reserved", "device"]
"""``allocated``: tensors. ``reserved``: what the allocator takes for them. ``device``: that and the CUDA context."""

Rule = Literal["over-budget", "increase"]

PASSED, FAILED = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleBlame:
    """A module that holds or gained most, without what its children hold."""

    name: str  # "blocks.*.attention": numbered layers count together; "" is the model itself
    bytes: int
    grown_bytes: int | None  # since the baseline; None without one


@dataclass(frozen=True, slots=True, kw_only=True)
class LineBlame:
    """A source line whose blocks are or grew most."""

    file: str  # as it is reached from where the target's path starts, "/" between its parts
    line: int
    function: str
    code: str
    bytes: int
    grown_bytes: int | None  # since the baseline; None without one


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken budget or tolerance, with all that a renderer says of it."""

    rule: Rule
    check: str  # name of the budget
    target: str
    device: str  # as CUDA reports it
    batch_size: int
    subject: str  # what is too much: "reserved", "activations", "phase backward"
    measured_bytes: int
    allowed_bytes: int
    allowed_text: str  # as it was written: "80%"
    baseline_bytes: int | None  # of the same subject
    phase: str  # the peak's
    step: int  # the peak's, counted from 0
    module: ModuleBlame | None
    line: LineBlame | None
    file: str  # where to point: the user's own line that is to blame, else the target
    file_line: int  # counted from 1
    message: str = ""  # the team's own words
    hint: str = ""  # the cheapest measure that would bring it under

    @property
    def over_bytes(self) -> int:
        """How much is too much."""
        return self.measured_bytes - self.allowed_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a check could not be made: never the same as a budget that was broken."""

    message: str
    hint: str
    traceback: str  # the user's own, "" where their code is not at fault
    exit_code: int  # 3 where their code failed, else 2

    @classmethod
    def of(cls, error: VramdocError) -> Fault:
        """``error`` as a value."""
        traceback = getattr(error, "traceback", "")
        return cls(message=error.message, hint=error.hint, traceback=traceback, exit_code=error.exit_code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One check, made or failed."""

    name: str
    target: str
    metric: Metric
    device: str = ""  # as CUDA reports it; "" with a fault
    batch_size: int = 0
    measured_bytes: int = 0  # of ``metric``
    limit_bytes: int | None = None
    limit_text: str = ""
    baseline_bytes: int | None = None  # of ``metric``
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    fault: Fault | None = None

    @property
    def passed(self) -> bool:
        """Whether it was made and found nothing."""
        return not self.findings and self.fault is None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """All checks of one call, in the order in which they were asked for."""

    checks: tuple[Checked, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding, in order."""
        return tuple(finding for check in self.checks for finding in check.findings)

    @property
    def passed(self) -> bool:
        """Whether every check was made and found nothing."""
        return all(check.passed for check in self.checks)

    @property
    def exit_code(self) -> int:
        """0 passed, 1 over a budget; that of the first fault where one check could not be made."""
        for check in self.checks:
            if check.fault is not None:
                return check.fault.exit_code
        return FAILED if self.findings else PASSED

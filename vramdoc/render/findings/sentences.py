"""The sentences of checks and findings, the same in every format. Plain text: each renderer escapes it for itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import groupby

from vramdoc.render.style import label, place
from vramdoc.report.findings import Checked, CheckResult, Finding, LineBlame, ModuleBlame
from vramdoc.units import format_bytes

MARKS = {"passed": "✓", "failed": "✗", "fault": "!"}
RULES = {
    "over-budget": "A training step needs more GPU memory than its budget allows.",
    "increase": "A figure of a training step's GPU memory grew more over its baseline than is allowed.",
}
NOT_CHECKED = "not-checked"
"""What stands where a rule's name would, for a check that could not be made."""

METRICS = {"allocated": "allocated", "reserved": "reserved", "device": "of the device"}
"""What follows a size of each metric."""

_SUBJECTS = {
    "allocated": "allocated memory",
    "reserved": "reserved memory",
    "device": "device memory",
    "growth": "growth per step",
}


def summary(result: CheckResult) -> str:
    """How many checks there were and what became of them."""
    total = len(result.checks)
    faults = sum(check.fault is not None for check in result.checks)
    failed = sum(bool(check.findings) for check in result.checks)
    if not (failed or faults):
        return f"{_count(total, 'check')} passed"
    of_all = f"of {total} checks" if total > 1 else "check"
    parts = [f"{failed} {of_all} failed"] if failed else []
    if faults:
        parts.append(f"{faults} {'' if failed else of_all + ' '}could not be made")
    return ", ".join(parts)


def state(check: Checked) -> str:
    """A key of :data:`MARKS`."""
    if check.fault is not None:
        return "fault"
    return "failed" if check.findings else "passed"


def headline(check: Checked) -> str:
    """What one check measured, and what that means."""
    if check.fault is not None:
        return f"not checked: {check.fault.message}"
    measured = f"{format_bytes(check.measured_bytes)} {METRICS[check.metric]}"
    if check.limit_bytes is None:
        return f"{measured}{since(check)}"
    spare = check.limit_bytes - check.measured_bytes
    verdict = f"{format_bytes(abs(spare))} {'below' if spare >= 0 else 'over'} the budget of {limit(check)}"
    return f"{measured}, {verdict}{since(check)}"


def limit(check: Checked) -> str:
    """The budget, "" where there is none."""
    if check.limit_bytes is None:
        return ""
    share = f" ({check.limit_text} of the GPU)" if check.limit_text.endswith("%") else ""
    return f"{format_bytes(check.limit_bytes)}{share}"


def since(check: Checked) -> str:
    """What became of the measured figure since the baseline, "" without one."""
    if check.baseline_bytes is None or check.fault is not None:
        return ""
    grown = check.measured_bytes - check.baseline_bytes
    return f", {signed(grown)} since the baseline" if grown else ", as in the baseline"


def subject(check: Checked) -> str:
    """What was run."""
    if check.fault is not None:
        return check.target
    return f"{check.target}, batch {check.batch_size}, {check.device}"


def broken(finding: Finding) -> str:
    """What a finding is about, in one sentence without its check's name."""
    what, measured = describe(finding.subject), format_bytes(finding.measured_bytes)
    over, allowed = format_bytes(finding.over_bytes), format_bytes(finding.allowed_bytes)
    if finding.rule == "over-budget":
        share = f" ({finding.allowed_text} of the GPU)" if finding.allowed_text.endswith("%") else ""
        return f"{measured} of {what} is {over} over the budget of {allowed}{share}"
    before = finding.baseline_bytes or 0
    grown = format_bytes(finding.measured_bytes - before)
    return f"{what} grew by {grown} from {format_bytes(before)} to {measured}; {finding.allowed_text} is allowed"


def describe(subject: str) -> str:
    """A finding's subject in words."""
    kind, _, name = subject.partition(" ")
    if name:
        return f"the peak of {label(name)}" if kind == "phase" else f"module {name}"
    return _SUBJECTS.get(subject, label(subject))


def together(findings: Sequence[Finding]) -> Iterator[tuple[Finding, ...]]:
    """Runs of findings that have the same details, which need to be told but once."""
    for _, run in groupby(findings, key=details):
        yield tuple(run)


def details(finding: Finding) -> tuple[tuple[str, str], ...]:
    """(heading, sentence) of all that helps to find the cause, without the line's code."""
    rows = [("peak", f"in {label(finding.phase)} of step {finding.step + 1}")]
    if finding.module is not None:
        rows.append(("module", module(finding.module)))
    if finding.line is not None:
        rows.append(("line", line(finding.line)))
    if finding.message:
        rows.append(("note", finding.message))
    if finding.hint:
        rows.append(("hint", finding.hint))
    return tuple(rows)


def module(blamed: ModuleBlame) -> str:
    """Which module, and why."""
    return f"{blamed.name or 'the model itself'} {_why(blamed.bytes, blamed.grown_bytes)}"


def line(blamed: LineBlame) -> str:
    """Which line, and why."""
    return f"{place(blamed.file, blamed.line)} {_why(blamed.bytes, blamed.grown_bytes)}"


def told(finding: Finding) -> str:
    """All of a finding in lines of text, its check's name first."""
    lines = [f"{finding.check}: {broken(finding)}"]
    lines += [f"{heading}: {text}" for heading, text in details(finding)]
    return "\n".join(lines)


def signed(size: int) -> str:
    """A difference with its sign."""
    return f"{'+' if size >= 0 else '-'}{format_bytes(abs(size))}"


def fingerprint(*parts: str) -> str:
    """An identity that stays while the finding does, whatever its figures are."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _why(size: int, grown: int | None) -> str:
    if grown is None:
        return f"is largest: {format_bytes(size)}"
    return f"grew most: {signed(grown)}, now {format_bytes(size)}"


def _count(number: int, singular: str) -> str:
    return f"{number} {singular}{'' if number == 1 else 's'}"

"""One report against one budget and its baseline: pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vramdoc.analysis.difference import Difference, difference
from vramdoc.analysis.footprint import Footprint, footprint, layer_names
from vramdoc.errors import UsageError
from vramdoc.gate.blame import blame, from_here
from vramdoc.gate.model import Advisor, Amount, Budget, Tolerance, no_advice
from vramdoc.report import Report
from vramdoc.report.findings import Checked, Finding, Rule
from vramdoc.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What the findings of one check share."""

    report: Report
    budget: Budget
    now: Footprint
    change: Difference | None  # since the baseline
    advisor: Advisor


def evaluate(
    report: Report,
    budget: Budget,
    *,
    baseline: Footprint | None = None,
    tolerances: Sequence[Tolerance] = (),
    advisor: Advisor = no_advice,
) -> Checked:
    """``report`` against ``budget``, and against ``tolerances`` over ``baseline``.

    Raises :class:`UsageError` where a tolerance names a module that is in neither, and where the report, of a real GPU
    that was full, cannot say that the budget holds.
    """
    now = footprint(report)
    change = difference(baseline, now) if baseline is not None else None
    case = _Case(report=report, budget=budget, now=now, change=change, advisor=advisor)
    measured = now.totals[budget.metric]
    limit = budget.limit.of(report.device.total_bytes) if budget.limit is not None else None
    findings = [*_over_budget(case, measured, limit), *_increases(case, tolerances)]
    if not findings and report.device.kind == "real" and not report.fits:
        raise UsageError(
            f"{report.target} ran out of GPU memory: what it needs is not known, only that it is more",
            hint=f"predict it instead, without a limit: --gpu {report.device.name!r}",
        )
    return Checked(
        name=budget.name,
        target=from_here(report.target),
        metric=budget.metric,
        device=report.device.name,
        batch_size=report.batch_size,
        measured_bytes=measured,
        limit_bytes=limit,
        limit_text=budget.limit.text if budget.limit is not None else "",
        baseline_bytes=baseline.totals.get(budget.metric) if baseline is not None else None,
        findings=tuple(findings),
        warnings=tuple(_warnings(report, limit, baseline)),
    )


def _over_budget(case: _Case, measured: int, limit: int | None) -> Iterator[Finding]:
    if limit is None or case.budget.limit is None or measured <= limit:
        return
    before = case.change.before.totals.get(case.budget.metric) if case.change is not None else None
    yield _finding(case, "over-budget", case.budget.metric, measured, limit, case.budget.limit, before)


def _increases(case: _Case, tolerances: Sequence[Tolerance]) -> Iterator[Finding]:
    if case.change is None:
        return
    for tolerance in tolerances:
        before = _figure(case, tolerance, case.change.before)
        measured = _figure(case, tolerance, case.now)
        allowed = before + tolerance.amount.of(max(before, 0))
        if measured > allowed:
            within = tolerance.name if tolerance.kind == "module" else ""
            yield _finding(
                case, "increase", tolerance.subject, measured, allowed, tolerance.amount, before, within=within
            )


def _figure(case: _Case, tolerance: Tolerance, of: Footprint) -> int:
    """The figure that ``tolerance`` is about, 0 where this run has none of it."""
    name = tolerance.name
    if tolerance.kind == "total":
        return of.totals.get(case.budget.metric if name == "peak" else name, 0)
    if tolerance.kind == "category":
        return of.categories.get(name, 0)
    if tolerance.kind == "phase":
        return of.phases.get(name, 0)
    _check_module(case, name)
    return of.modules.get(name, 0)


def modules_of(now: Footprint, before: Footprint | None) -> set[str]:
    """The modules that a tolerance may name: those of now, and those that there were."""
    return {*now.modules, *(before.modules if before is not None else ())}


def _check_module(case: _Case, name: str) -> None:
    known = modules_of(case.now, case.change.before if case.change is not None else None)
    if name in known:
        return
    together = layer_names(case.report.modules).get(name)
    close = difflib.get_close_matches(name, sorted(known), n=1)
    hint = "the modules are in the baseline: vramdoc baseline show --modules"
    if together is not None:
        hint = f"layers count together: {together}"
    elif close:
        hint = f"did you mean {close[0]}?"
    raise UsageError(f"{case.report.target} has no category, phase or module called {name!r}", hint=hint)


def _finding(
    case: _Case,
    rule: Rule,
    subject: str,
    measured: int,
    allowed: int,
    amount: Amount,
    before: int | None,
    *,
    within: str = "",
) -> Finding:
    report, blamed = case.report, blame(case.report, case.now, case.change, within=within)
    return Finding(
        rule=rule,
        check=case.budget.name,
        target=from_here(report.target),
        device=report.device.name,
        batch_size=report.batch_size,
        subject=subject,
        measured_bytes=measured,
        allowed_bytes=allowed,
        allowed_text=amount.text,
        baseline_bytes=before,
        phase=report.peak.phase,
        step=report.peak.step,
        module=blamed.module,
        line=blamed.line,
        file=blamed.file,
        file_line=blamed.file_line,
        message=case.budget.message,
        hint=case.advisor(report, measured - allowed),
    )


def _warnings(report: Report, limit: int | None, baseline: Footprint | None) -> Iterator[str]:
    yield from report.warnings
    if report.values.high_bytes is not None and report.values.high_bytes > report.peak.allocated_bytes:
        high = format_bytes(report.values.high_bytes)
        yield f"under other assumptions about values the allocated peak is up to {high}: see vramdoc profile"
    if not report.fits:
        yield f"the step does not fit {report.device.name}"
    if limit is not None and limit > report.device.total_bytes:
        total = format_bytes(report.device.total_bytes)
        yield f"the budget, {format_bytes(limit)}, is more than {report.device.name} has: {total}"
    if baseline is not None:
        yield from _other_conditions(report, baseline)


def _other_conditions(report: Report, baseline: Footprint) -> Iterator[str]:
    pairs = (
        ("GPU", baseline.device, report.device.name),
        ("batch size", str(baseline.batch_size), str(report.batch_size)),
        ("torch", baseline.torch, report.versions.get("torch", "")),
    )
    for what, before, now in pairs:
        if before != now:
            yield f"the baseline is of another {what}: {before}, now {now}"

"""Makes checks: profiles what they are about, many at once, and holds each report against its budget."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vramdoc.analysis.footprint import footprint
from vramdoc.errors import ReportError, UsageError, VramdocError
from vramdoc.gate.amounts import parse_limit, parse_metric, parse_tolerance
from vramdoc.gate.baseline import Baseline, read_baseline
from vramdoc.gate.blame import from_here
from vramdoc.gate.evaluate import evaluate, modules_of
from vramdoc.gate.model import Advisor, Budget, Tolerance, no_advice
from vramdoc.report import Report, decode
from vramdoc.report.findings import Checked, CheckResult, Fault
from vramdoc.runner.many import Outcome, Wanted, profile_many
from vramdoc.runner.progress import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One check to make."""

    budget: Budget
    subject: Wanted | Report  # what is to be profiled, or was

    @property
    def target(self) -> str:
        """As the user gave it."""
        return self.subject.target


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What all checks of one call share."""

    baseline: Baseline | None = None
    tolerances: tuple[Tolerance, ...] = ()
    advisor: Advisor = no_advice


def run_checks(
    jobs: Sequence[Job],
    conditions: Conditions,
    *,
    at_once: int | None = None,
    progress: Listener | None = None,
) -> CheckResult:
    """Makes ``jobs`` and returns their results in the same order; one that fails does not stop the others."""
    outcomes = outcomes_of(jobs, at_once=at_once, progress=progress)
    pairs = list(zip(jobs, outcomes, strict=True))
    known = [_modules(job, outcome, conditions) for job, outcome in pairs]
    somewhere = set().union(*known)
    return CheckResult(
        checks=tuple(
            _checked(job, outcome, _about(conditions, modules, somewhere))
            for (job, outcome), modules in zip(pairs, known, strict=True)
        )
    )


def _modules(job: Job, outcome: Outcome, conditions: Conditions) -> set[str]:
    if not isinstance(outcome, Report):
        return set()
    entries = conditions.baseline.entries if conditions.baseline is not None else {}
    return modules_of(footprint(outcome), entries.get(job.budget.name))


def _about(conditions: Conditions, modules: set[str], somewhere: set[str]) -> Conditions:
    """``conditions`` less tolerances for modules of other models; one that no model has stays, as the error it is."""
    kept = [
        tolerance
        for tolerance in conditions.tolerances
        if tolerance.kind != "module" or tolerance.name in modules or tolerance.name not in somewhere
    ]
    return replace(conditions, tolerances=tuple(kept))


def outcomes_of(
    jobs: Sequence[Job], *, at_once: int | None = None, progress: Listener | None = None
) -> tuple[Outcome, ...]:
    """For each job its report, or the error that there was instead."""
    wanted = [job.subject for job in jobs if isinstance(job.subject, Wanted)]
    made = iter(profile_many(wanted, jobs=at_once, progress=progress) if wanted else ())
    return tuple(next(made) if isinstance(job.subject, Wanted) else job.subject for job in jobs)


def check(
    target: str | os.PathLike[str] | Report,
    *,
    budget: str | None = None,
    gpu: str | None = None,
    metric: str = "reserved",
    batch_size: int | None = None,
    baseline: str | os.PathLike[str] | None = None,
    fail_on_increase: Sequence[str] = (),
    name: str | None = None,
    steps: int | None = None,
    timeout: float = 600.0,
    assume: Mapping[str, str] | None = None,
) -> Checked:
    """Checks one target, a report's JSON file or a :class:`Report`, and returns what was found.

    ``budget`` is a size (``"22GiB"``) or a share of the GPU (``"80%"``), of ``metric``. With ``baseline``, a file that
    ``vramdoc baseline update`` wrote, ``fail_on_increase`` lists tolerances (``"peak:3%"``, ``"activations:200MiB"``)
    over its entry ``name``, by default the target's path. The rest is as in :func:`vramdoc.profile`. Raises an error of
    :mod:`vramdoc.errors` where the check cannot be made; a broken budget is a finding in the result.
    """
    limit = parse_limit(budget) if budget is not None else None
    require_something(limit is not None, baseline=baseline is not None, tolerances=bool(fail_on_increase))
    if isinstance(target, Report):
        subject: Wanted | Report = target
    elif os.fspath(target).endswith(".json"):
        subject = read_report(Path(target))
    else:
        subject = Wanted(
            target=os.fspath(target),
            gpu=gpu,
            batch_size=batch_size,
            steps=steps,
            timeout=timeout,
            assume=tuple((assume or {}).items()),
        )
    named = Budget(name=name or from_here(subject.target), limit=limit, metric=parse_metric(metric))
    conditions = Conditions(
        baseline=read_baseline(Path(baseline)) if baseline is not None else None,
        tolerances=tuple(parse_tolerance(text) for text in fail_on_increase),
    )
    job = Job(budget=named, subject=subject)
    (outcome,) = outcomes_of([job])
    if isinstance(outcome, VramdocError):
        raise outcome
    return _evaluated(job, outcome, conditions)


def require_something(limited: bool, *, baseline: bool, tolerances: bool) -> None:
    """Raises :class:`UsageError` where a check could not find anything."""
    if tolerances and not baseline:
        raise UsageError("--fail-on-increase needs something to compare with", hint="add --baseline FILE")
    if not limited and not tolerances:
        what = "add --fail-on-increase peak:3%" if baseline else "give --budget 22GiB, or --budget 80%"
        raise UsageError("there is nothing to check against", hint=what)


def read_report(path: Path) -> Report:
    """The report in the file at ``path``. Raises :class:`ReportError`."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise ReportError(f"no such file: {path}", hint="vramdoc profile model.py -o report.json writes one") from None
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}") from None
    return decode(text, source=str(path))


def _checked(job: Job, outcome: Outcome, conditions: Conditions) -> Checked:
    try:
        if isinstance(outcome, VramdocError):
            raise outcome
        return _evaluated(job, outcome, conditions)
    except VramdocError as error:
        return Checked(
            name=job.budget.name, target=from_here(job.target), metric=job.budget.metric, fault=Fault.of(error)
        )


def _evaluated(job: Job, report: Report, conditions: Conditions) -> Checked:
    baseline = conditions.baseline
    return evaluate(
        report,
        job.budget,
        baseline=baseline.entry(job.budget.name) if baseline is not None else None,
        tolerances=conditions.tolerances,
        advisor=conditions.advisor,
    )

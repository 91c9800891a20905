"""Which checks a command line and pyproject.toml ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vramdoc.cli import state
from vramdoc.cli.config import TIMEOUT, Project, Settings, check_keys, convert, resolve
from vramdoc.errors import UsageError
from vramdoc.gate import Budget, Job, parse_limit, parse_metric, read_report
from vramdoc.hardware import find
from vramdoc.report import Report
from vramdoc.runner.many import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetTable:
    """One ``[[tool.vramdoc.budget]]``; its fields are its keys."""

    name: str
    limit: str  # "22GiB" or "80%"
    target: str | None = None  # from the folder of pyproject.toml; None: that of [tool.vramdoc], or the last one
    gpu: str | None = None  # None: that of [tool.vramdoc]
    metric: str | None = None
    batch_size: int | None = None
    message: str = ""  # for whoever breaks it


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says beside the settings."""

    settings: Settings
    budget: str | None = None
    metric: str | None = None
    name: str | None = None  # with ``budget`` the check's name, else that of a budget in pyproject.toml


def jobs_for(asked: Asked, project: Project) -> tuple[Job, ...]:
    """The checks to make. Raises :class:`UsageError`.

    A budget on the command line stands alone; else those of pyproject.toml are taken that are about the target named,
    or all where none is named; where there are none, the target is taken without a budget.
    """
    tables = _tables(project)
    report = _report(asked)
    if asked.budget is None:
        chosen = [table for table in tables if _is_about(table, asked, report, project)]
        if asked.name is not None and tables and not chosen:
            names = ", ".join(table.name for table in tables)
            raise UsageError(f"no budget is called {asked.name!r}", hint=f"pyproject.toml has {names}")
        if chosen:
            return tuple(_table_job(table, asked, report, project) for table in chosen)
    limit = parse_limit(asked.budget) if asked.budget is not None else None
    subject = report if report is not None else _wanted(asked.settings, project)
    budget = Budget(
        name=asked.name or _default_name(subject.target, project),
        limit=limit,
        metric=parse_metric(asked.metric or "reserved"),
    )
    return (Job(budget=budget, subject=subject),)


def _tables(project: Project) -> tuple[BudgetTable, ...]:
    found: dict[str, BudgetTable] = {}
    where = f"[[tool.vramdoc.budget]] in {project.folder / 'pyproject.toml'}"
    for number, raw in enumerate(project.budgets, start=1):
        name = raw.get("name")
        place = f"{where}, {name!r}" if isinstance(name, str) else f"{where}, number {number}"
        check_keys(raw, BudgetTable, place)
        table = convert(raw, BudgetTable, place)
        if not table.name:
            raise UsageError(f"{place} has an empty name", hint="name what it is about: gpt2-a100")
        if table.name in found:
            raise UsageError(f"two budgets are called {table.name!r} in {where}", hint="give each its own name")
        parse_limit(table.limit, where=f"limit of {table.name!r},")
        parse_metric(table.metric or "reserved", where=f"metric of {table.name!r},")
        found[table.name] = table
    return tuple(found.values())


def _is_about(table: BudgetTable, asked: Asked, report: Report | None, project: Project) -> bool:
    if asked.name is not None and table.name != asked.name:
        return False
    wanted = report.target if report is not None else asked.settings.target
    if wanted is None:
        return True
    target = _target(table, project) or project.settings.target
    if target is None or Path(target).resolve() != Path(wanted).resolve():
        return False
    if report is None:
        return True
    gpu = table.gpu or project.settings.gpu
    same_gpu = gpu is None or find(gpu).name == report.device.name
    return same_gpu and table.batch_size in (None, report.batch_size)


def _table_job(table: BudgetTable, asked: Asked, report: Report | None, project: Project) -> Job:
    flags = replace(asked.settings, target=asked.settings.target or _target(table, project))
    own = Settings(gpu=table.gpu, batch_size=table.batch_size)
    budget = Budget(
        name=table.name,
        limit=parse_limit(table.limit),
        metric=parse_metric(asked.metric or table.metric or "reserved"),
        message=table.message,
    )
    around = replace(project, settings=own.over(project.settings))
    return Job(budget=budget, subject=report if report is not None else _wanted(flags, around))


def _target(table: BudgetTable, project: Project) -> str | None:
    return os.path.relpath(project.folder / table.target) if table.target is not None else None


def _wanted(flags: Settings, project: Project) -> Wanted:
    settings = resolve(flags, project)
    return Wanted(
        target=settings.target or state.last_target(project.folder),
        gpu=settings.gpu,
        batch_size=settings.batch_size,
        steps=settings.steps,
        timeout=settings.timeout or TIMEOUT,
        assume=tuple((settings.assume or {}).items()),
    )


def _report(asked: Asked) -> Report | None:
    """The report that the target is, where it is one, held against the flags that it cannot follow any more."""
    target = asked.settings.target
    if target is None or not target.endswith(".json"):
        return None
    report = read_report(Path(target))
    for flag, is_other, is_what in _contradictions(asked.settings, report):
        if is_other:
            raise UsageError(
                f"{target} is of {is_what}, which {flag} cannot change",
                hint=f"name the target instead: vramdoc check {report.target}",
            )
    return report


def _contradictions(settings: Settings, report: Report) -> Iterator[tuple[str, bool, str]]:
    device, batch = report.device.name, report.batch_size
    yield "--gpu", settings.gpu is not None and find(settings.gpu).name != device, device
    yield "--batch-size", settings.batch_size not in (None, batch), f"batch {batch}"
    yield "--steps", settings.steps not in (None, report.steps), f"{report.steps} steps"


def _default_name(target: str, project: Project) -> str:
    path = Path(target).resolve()
    return (path.relative_to(project.folder) if path.is_relative_to(project.folder) else path).as_posix()

"""``vramdoc check``."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vramdoc.assumptions import parse
from vramdoc.cli import output
from vramdoc.cli.config import TIMEOUT, Settings, find_project
from vramdoc.cli.progress import progress_bar
from vramdoc.errors import ReportError, TargetError, UsageError

if TYPE_CHECKING:
    from vramdoc.gate import Advisor, CheckResult
    from vramdoc.report import Report

_FAILED = 1
_OF_THE_REPOSITORY = ("github", "gitlab", "sarif")
"""Formats whose paths start at the top of the repository, wherever the command ran."""


def check(
    target: Annotated[
        str | None,
        typer.Argument(metavar="TARGET", help="Python file or report.json; else all budgets of pyproject.toml."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="SIZE", help="What it may need: 22GiB, or a share of the GPU, 80%.")
    ] = None,
    gpu: Annotated[str | None, typer.Option(metavar="NAME", help="The GPU to predict for.")] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="WHAT", help="allocated, reserved (default), or device: with the context.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="N", help="Batch size, else the target's BATCH_SIZE.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="One budget of pyproject.toml; with --budget, the check's name.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What was accepted: vramdoc baseline update writes it.")
    ] = None,
    fail_on_increase: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT:AMOUNT", help="peak:3%, activations:200MiB, phase:loss:0; may be repeated."),
    ] = None,
    output_format: Annotated[
        str, typer.Option(metavar="FORMAT", help="text, json, markdown, github, gitlab, junit or sarif.")
    ] = "text",
    save: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write that format there, and print the text."),
    ] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 although a budget is broken.")] = False,
    no_hint: Annotated[bool, typer.Option("--no-hint", help="Do not look for a measure that would help.")] = False,
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Whole steps to run, else as many as the peak needs to repeat.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help=f"Limit for each run, {TIMEOUT:g} by default.")
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE=CHOICE", help="Answer for values that only a real GPU computes; may be repeated."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Profiles at a time, one for each processor by default.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, and no output where all passed.")] = False,
) -> None:
    """Fail where a training step needs more memory than it may, or more than it did."""
    from vramdoc import gate
    from vramdoc.cli.budgets import Asked, jobs_for

    _check_format(output_format, save)
    _check_jobs(jobs)
    flags = Settings(
        target=target, gpu=gpu, batch_size=batch_size, steps=steps, timeout=timeout, assume=parse(assume or []) or None
    )
    asked = Asked(settings=flags, budget=budget, metric=metric, name=name)
    tolerances = tuple(gate.parse_tolerance(text) for text in fail_on_increase or [])
    planned = jobs_for(asked, find_project(Path.cwd()))
    gate.require_something(
        any(job.budget.limit for job in planned), baseline=baseline is not None, tolerances=bool(tolerances)
    )
    conditions = gate.Conditions(
        baseline=gate.read_baseline(baseline) if baseline is not None else None,
        tolerances=tolerances,
        advisor=gate.no_advice if no_hint else _advisor(metric),
    )
    with progress_bar(quiet=quiet) as listener:
        result = gate.run_checks(planned, conditions, at_once=jobs, progress=listener)
    _report(result, output_format, save, quiet=quiet)
    raise typer.Exit(0 if exit_zero and result.exit_code == _FAILED else result.exit_code)


def _advisor(metric: str | None) -> Advisor:
    """Finds the cheapest measure that brings a step under its budget; nothing is loaded until one is broken."""

    def advise(report: Report, excess_bytes: int) -> str:
        from vramdoc.advise import advisor
        from vramdoc.gate import parse_metric

        return advisor(parse_metric(metric or "reserved"))(report, excess_bytes)

    return advise


def _check_format(form: str, save: Path | None) -> None:
    import difflib

    from vramdoc.render.findings import FORMATS

    if form not in FORMATS:
        nearest = difflib.get_close_matches(form, FORMATS, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"they are {', '.join(FORMATS)}"
        raise UsageError(f"no output format is called {form!r}", hint=hint)
    if save is not None:
        output.check_writable(save)


def _check_jobs(jobs: int | None) -> None:
    if jobs is not None and jobs < 1:
        raise UsageError(f"jobs must be at least 1, not {jobs}")


def _report(result: CheckResult, form: str, save: Path | None, *, quiet: bool) -> None:
    """The result on stdout and where it was asked for; what kept checks from being made on stderr."""
    from vramdoc.render.findings import render_result

    alone = len(result.checks) == 1
    for made in result.checks:
        if made.fault is not None:
            name = "" if alone else f"{made.name}: "
            output.failure(TargetError(name + made.fault.message, hint=made.fault.hint, traceback=made.fault.traceback))
    shown = _from_root(result) if form in _OF_THE_REPOSITORY else result
    rendered = "" if form == "text" and save is None else render_result(shown, form)
    if save is not None:
        _save(save, rendered)
    if save is None and form != "text":
        output.result(rendered)
    elif not (quiet and result.passed) and not (alone and made.fault is not None):
        _print_text(result)
    if form == "github":
        _add_to_summary(result)


def _from_root(result: CheckResult) -> CheckResult:
    """``result`` with the places of annotations as the build system sees them."""
    root, here = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR"), Path.cwd()
    if not root or not here.is_relative_to(Path(root).resolve()):
        return result
    folder = here.relative_to(Path(root).resolve())
    return replace(
        result,
        checks=tuple(
            replace(
                made,
                target=(folder / made.target).as_posix(),
                findings=tuple(replace(found, file=(folder / found.file).as_posix()) for found in made.findings),
            )
            for made in result.checks
        ),
    )


def _print_text(result: CheckResult) -> None:
    from vramdoc.render.findings.text import render

    ascii_only = output.is_ascii(sys.stdout)
    output.result(render(result, width=output.width(), color=output.color_system(sys.stdout), ascii_only=ascii_only))


def _save(path: Path, text: str) -> None:
    try:
        output.write(path, text)
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror or error}") from None
    output.note(f"wrote {path}")


def _add_to_summary(result: CheckResult) -> None:
    """GitHub shows what a step writes to this file on the page of its run."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return
    from vramdoc.render.findings import render_result

    try:
        with Path(summary).open("a", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(render_result(result, "markdown") + "\n")
    except OSError as error:
        output.warning(f"cannot write the job's summary to {summary}: {error.strerror or error}")

"""``vramdoc diff``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vramdoc.assumptions import parse
from vramdoc.cli import output, state
from vramdoc.cli.config import TIMEOUT, Settings, find_project, resolve
from vramdoc.cli.progress import progress_bar
from vramdoc.errors import UsageError, VramdocError

if TYPE_CHECKING:
    from vramdoc.analysis.difference import Difference
    from vramdoc.analysis.footprint import Footprint
    from vramdoc.runner.many import Outcome, Wanted

FORMATS = ("text", "json", "markdown")


def diff(
    first: Annotated[
        str | None, typer.Argument(metavar="A", help="report.json or Python file; with --rev, the target.")
    ] = None,
    second: Annotated[str | None, typer.Argument(metavar="B", help="What to compare it with.")] = None,
    revisions: Annotated[
        str | None,
        typer.Option(
            "--rev", metavar="A..B", help="Two revisions of the target in git; A alone: with the files as they are."
        ),
    ] = None,
    gpu: Annotated[str | None, typer.Option(metavar="NAME", help="The GPU to predict for.")] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="N", help="Batch size, else the target's BATCH_SIZE.")
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Whole steps to run.")] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help=f"Limit for each run, {TIMEOUT:g} by default.")
    ] = None,
    assume: Annotated[
        list[str] | None, typer.Option(metavar="RULE=CHOICE", help="Answer for values that only a real GPU computes.")
    ] = None,
    output_format: Annotated[str, typer.Option(metavar="FORMAT", help="text, json or markdown.")] = "text",
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Say what grew from one run to another: by category, phase, module and line, largest first."""
    from vramdoc.analysis.difference import difference

    if output_format not in FORMATS:
        raise UsageError(f"no output format is called {output_format!r}", hint=f"they are {', '.join(FORMATS)}")
    flags = Settings(gpu=gpu, batch_size=batch_size, steps=steps, timeout=timeout, assume=parse(assume or []) or None)
    if revisions is not None:
        before, after = _of_revisions(revisions, first, second, flags, quiet=quiet)
    else:
        before, after = _of_files(first, second, flags, quiet=quiet)
    _print(difference(before, after), output_format)


def _of_files(first: str | None, second: str | None, flags: Settings, *, quiet: bool) -> tuple[Footprint, Footprint]:
    from vramdoc.gate import Budget, Job, outcomes_of, read_report

    if first is None or second is None:
        raise UsageError(
            "two runs are needed to compare", hint="vramdoc diff before.json after.json, or --rev main..HEAD model.py"
        )
    settings = resolve(flags, find_project(Path.cwd()))
    jobs = [
        Job(
            budget=Budget(name=name, limit=None),
            subject=read_report(Path(name)) if name.endswith(".json") else _wanted(name, settings),
        )
        for name in (first, second)
    ]
    with progress_bar(quiet=quiet) as listener:
        before, after = outcomes_of(jobs, progress=listener)
    return _footprint(before), _footprint(after)


def _of_revisions(
    revisions: str, first: str | None, second: str | None, flags: Settings, *, quiet: bool
) -> tuple[Footprint, Footprint]:
    from vramdoc.runner.revisions import parse_range, profile_revisions

    if second is not None:
        raise UsageError("--rev compares one target with itself", hint="name only the target")
    project = find_project(Path.cwd())
    settings = resolve(flags, project)
    wanted = parse_range(revisions)
    target = first or settings.target or state.last_target(project.folder)
    with progress_bar(quiet=quiet) as listener:
        before, after = profile_revisions(wanted, _wanted(target, settings), progress=listener)
    return _footprint(before, wanted[0]), _footprint(after, wanted[1])


def _wanted(target: str, settings: Settings) -> Wanted:
    from vramdoc.runner.many import Wanted

    return Wanted(
        target=target,
        gpu=settings.gpu,
        batch_size=settings.batch_size,
        steps=settings.steps,
        timeout=settings.timeout or TIMEOUT,
        assume=tuple((settings.assume or {}).items()),
    )


def _footprint(outcome: Outcome, revision: str | None = None) -> Footprint:
    """What is compared of a run, called by its revision too where it has one."""
    from vramdoc.analysis.footprint import footprint

    if isinstance(outcome, VramdocError):
        raise outcome
    made = footprint(outcome)
    return made if revision is None else replace(made, target=f"{made.target} at {revision}")


def _print(found: Difference, form: str) -> None:
    if form == "json":
        from vramdoc.render.difference import as_json

        output.result(as_json.render(found))
    elif form == "markdown":
        from vramdoc.render.difference import markdown

        output.result(markdown.render(found))
    else:
        from vramdoc.render.difference import text

        ascii_only = output.is_ascii(sys.stdout)
        color = output.color_system(sys.stdout)
        output.result(text.render(found, width=output.width(), color=color, ascii_only=ascii_only))

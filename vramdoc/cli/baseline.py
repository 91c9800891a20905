"""``vramdoc baseline update`` and ``vramdoc baseline show``."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vramdoc.assumptions import parse
from vramdoc.cli import output
from vramdoc.cli.config import TIMEOUT, Settings, find_project
from vramdoc.cli.progress import progress_bar
from vramdoc.errors import ReportError, VramdocError

if TYPE_CHECKING:
    from vramdoc.gate import Baseline, Footprint

FILE = "vram-baseline.json"

baseline = typer.Typer(add_completion=False, rich_markup_mode=None)
"""The group of commands."""

_File = Annotated[Path, typer.Option("--baseline", metavar="FILE", help="The baseline, made to be committed.")]


@baseline.command(
    "update",
    short_help="Measure now, and accept it.",
    epilog=f"\b\nExample: vramdoc baseline update model.py --gpu a100-40\n"
    f"Next:    vramdoc check model.py --gpu a100-40 --baseline {FILE} --fail-on-increase peak:3%",
)
def update(
    target: Annotated[
        str | None,
        typer.Argument(metavar="TARGET", help="Python file or report.json; else all budgets of pyproject.toml."),
    ] = None,
    file: _File = Path(FILE),
    gpu: Annotated[str | None, typer.Option(metavar="NAME", help="The GPU to predict for.")] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="N", help="Batch size, else the target's BATCH_SIZE.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="One budget of pyproject.toml, or the new entry's name.")
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Whole steps to run.")] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help=f"Limit for each run, {TIMEOUT:g} by default.")
    ] = None,
    assume: Annotated[
        list[str] | None, typer.Option(metavar="RULE=CHOICE", help="Answer for values that only a real GPU computes.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Measure what the checks measure and write it to the baseline; entries of other checks stay as they are."""
    from vramdoc import gate
    from vramdoc.cli.budgets import Asked, jobs_for

    output.check_writable(file)
    if file.exists():
        gate.read_baseline(file)  # before the long work
    flags = Settings(
        target=target, gpu=gpu, batch_size=batch_size, steps=steps, timeout=timeout, assume=parse(assume or []) or None
    )
    jobs = jobs_for(Asked(settings=flags, name=name), find_project(Path.cwd()))
    with progress_bar(quiet=quiet) as listener:
        outcomes = gate.outcomes_of(jobs, progress=listener)
    entries = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        if isinstance(outcome, VramdocError):
            raise outcome
        entries[job.budget.name] = _portable(gate.footprint(outcome))
    before = _merge(file, entries)
    _print_changes(before, entries)
    output.note(f"wrote {file}")


@baseline.command(
    "show",
    short_help="List what was accepted.",
    epilog="\b\nExample: vramdoc baseline show --modules\nNext:    vramdoc baseline update",
)
def show(
    file: _File = Path(FILE),
    modules: Annotated[bool, typer.Option("--modules", help="List every module of every entry too.")] = False,
) -> None:
    """List the entries of the baseline."""
    from vramdoc import gate
    from vramdoc.render.difference.baseline import render_baseline

    output.result(
        render_baseline(
            gate.read_baseline(file).entries,
            with_modules=modules,
            width=output.width(),
            color=output.color_system(sys.stdout),
            ascii_only=output.is_ascii(sys.stdout),
        )
    )


def _portable(entry: Footprint) -> Footprint:
    """``entry`` with a target that is the same on every machine, where it lies below the current folder."""
    target = Path(entry.target)
    here = Path.cwd()
    return replace(entry, target=(target.relative_to(here) if target.is_relative_to(here) else target).as_posix())


def _merge(file: Path, entries: Mapping[str, Footprint]) -> Baseline:
    """Writes ``entries`` into ``file`` and returns what was in it."""
    from vramdoc import gate

    try:
        with _alone_in(file.parent):
            before = gate.read_baseline(file) if file.exists() else gate.Baseline()
            output.write(file, gate.encode_baseline(before.updated(entries)))
    except OSError as error:
        raise ReportError(f"cannot write {file}: {error.strerror or error}") from None
    return before


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Holds off every other update in ``folder``: two that read, change and write at once would lose one change."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _print_changes(before: Baseline, entries: Mapping[str, Footprint]) -> None:
    from vramdoc.render.difference.sentences import accepted

    lines = [accepted(name, before.entries.get(name), entry) for name, entry in entries.items()]
    output.result("".join(f"{line}\n" for line in lines))

"""``vramdoc profile``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vramdoc.assumptions import parse
from vramdoc.cli import output, state
from vramdoc.cli.config import Settings, find_project, resolve
from vramdoc.cli.progress import progress_bar
from vramdoc.errors import ReportError
from vramdoc.render import check_suffix, render_as

if TYPE_CHECKING:
    from vramdoc.report import Report

_TIMEOUT = 600.0


def profile(
    target: Annotated[
        str | None,
        typer.Argument(metavar="TARGET", help="Python file with build_model and make_batch; else the last one."),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Predict for this GPU; without it, measure on the machine's own."),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="N", help="Batch size, else the target's BATCH_SIZE.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Whole steps to run, else as many as the peak needs to repeat.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help=f"Limit for each run, {_TIMEOUT:g} by default.")
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE=CHOICE", help="Answer for values that only a real GPU computes; may be repeated."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the report too: .json, .txt, .md, .html or .svg."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print the verdict only, and no progress.")] = False,
) -> None:
    """Run a training step and say where its GPU memory goes, and whether it fits."""
    project = find_project(Path.cwd())
    flags = Settings(
        target=target, gpu=gpu, batch_size=batch_size, steps=steps, timeout=timeout, assume=parse(assume or []) or None
    )
    settings = resolve(flags, project)
    path = settings.target or state.last_target(project.folder)
    suffix = _checked(save) if save is not None else ""
    report = _measured(path, settings, quiet=quiet)
    state.remember(project.folder, path, report)
    if save is not None:
        _save(save, suffix, report)
    _print(report, as_json=as_json, quiet=quiet)


def _checked(save: Path) -> str:
    suffix = check_suffix(save)
    output.check_writable(save)
    return suffix


def _measured(path: str, settings: Settings, *, quiet: bool) -> Report:
    from vramdoc import runner

    with progress_bar(quiet=quiet) as listener:
        return runner.profile(
            path,
            gpu=settings.gpu,
            batch_size=settings.batch_size,
            steps=settings.steps,
            timeout=settings.timeout or _TIMEOUT,
            assume=settings.assume,
            progress=listener,
        )


def _save(path: Path, suffix: str, report: Report) -> None:
    try:
        output.write(path, render_as(report, suffix))
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror or error}") from None
    output.note(f"wrote {path}")


def _print(report: Report, *, as_json: bool, quiet: bool) -> None:
    """The result on stdout; warnings on stderr too where the result is not the view that holds them."""
    from vramdoc.render.sentences import cautions

    if as_json or quiet:
        for text in cautions(report):
            output.warning(text)
    if as_json:
        output.result(render_as(report, ".json"))
        return
    from vramdoc.render import terminal

    ascii_only = output.is_ascii(sys.stdout)
    if quiet:
        output.result(terminal.summary_line(report, ascii_only=ascii_only))
        return
    color = output.color_system(sys.stdout)
    output.result(terminal.render(report, width=output.width(), color=color, ascii_only=ascii_only))

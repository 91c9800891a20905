"""``vramdoc advise``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vramdoc.assumptions import parse
from vramdoc.cli import output, state
from vramdoc.cli.config import Settings, find_project, resolve
from vramdoc.cli.progress import progress_bar
from vramdoc.errors import ReportError, UsageError
from vramdoc.render import check_suffix
from vramdoc.units import parse_bytes

if TYPE_CHECKING:
    from vramdoc.advise import Asked
    from vramdoc.report.advice import AdviceReport

_TIMEOUT = 600.0


def advise(
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="Python file with build_model and make_batch; else the last.")
    ] = None,
    gpus: Annotated[int, typer.Option(metavar="N", help="How many GPUs may be used.")] = 1,
    gpus_per_node: Annotated[
        int | None, typer.Option(metavar="N", help="GPUs in one machine; all of them by default.")
    ] = None,
    gpu: Annotated[str | None, typer.Option(metavar="NAME", help="The GPU to advise for.")] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Limit of the reserved peak, else what the GPU has: 22GiB.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="N", help="Batch size on each GPU, else the target's BATCH_SIZE.")
    ] = None,
    allow: Annotated[
        str | None,
        typer.Option(
            metavar="TIERS", help="What plans may take beside free: speed,numerics,training. By default speed and bf16."
        ),
    ] = None,
    margin: Annotated[
        str | None, typer.Option(metavar="SHARE", help="What stays free, 5% of the GPU by default, none of a budget.")
    ] = None,
    show: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print the code of one measure, or of a plan by its number.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Show on a small copy that gradients stay the same (free and speed).")
    ] = False,
    block: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Class of the repeated blocks, where it is not found by itself.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    save: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write it too: .json, .txt, .md, .html or .svg."),
    ] = None,
    measure_time: Annotated[
        bool, typer.Option("--measure-time", help="Time the target and the plans on this machine's GPU.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help=f"Limit for each run, {_TIMEOUT:g} by default.")
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE=CHOICE", help="Answer for values that only a real GPU computes; may be repeated."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Say what to change, what it saves and what it costs, each saving proved by running the step with the change."""
    from vramdoc import advise as adviser

    project = find_project(Path.cwd())
    flags = Settings(target=target, gpu=gpu, batch_size=batch_size, timeout=timeout, assume=parse(assume or []) or None)
    settings = resolve(flags, project)
    suffix = check_suffix(save) if save is not None else ""
    if save is not None:
        output.check_writable(save)
    asked = adviser.checked(
        settings.target or state.last_target(project.folder),
        gpu=settings.gpu,
        gpus=gpus,
        gpus_per_node=gpus_per_node,
        budget_bytes=parse_bytes(budget) if budget is not None else None,
        batch_size=settings.batch_size,
        allow=[name.strip() for name in allow.split(",") if name.strip()] if allow is not None else None,
        margin=_share(margin) if margin is not None else None,
        block=block,
        verify=verify,
        measure_time=measure_time,
        timeout=settings.timeout or _TIMEOUT,
        assume=settings.assume,
    )
    report = _found(asked, state.cache_folder(project.folder), show, quiet=quiet)
    if save is not None:
        _save(save, suffix, report)
    _print(report, show, as_json=as_json)


def _share(text: str) -> float:
    """``5%`` or ``0.05``. Raises :class:`UsageError`."""
    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise UsageError(f"not a share: {text!r}", hint="write --margin 5%") from None


def _found(asked: Asked, cache: Path, show: str | None, *, quiet: bool) -> AdviceReport:
    from vramdoc import advise as adviser
    from vramdoc.advise.measures import by_name

    only = None
    if show is not None and not show.isdecimal():
        only = by_name(show).name
    with progress_bar(quiet=quiet) as listener:
        return adviser.advise(asked, cache=cache, only=only, progress=listener)


def _save(path: Path, suffix: str, report: AdviceReport) -> None:
    from vramdoc.render.advice import render_advice_as

    try:
        output.write(path, render_advice_as(report, suffix))
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror or error}") from None
    output.note(f"wrote {path}")


def _print(report: AdviceReport, show: str | None, *, as_json: bool) -> None:
    from vramdoc.render.advice import render_advice_as, terminal

    if as_json:
        output.result(render_advice_as(report, ".json"))
        return
    width, color, ascii_only = output.width(), output.color_system(sys.stdout), output.is_ascii(sys.stdout)
    if show is None:
        output.result(terminal.render(report, width=width, color=color, ascii_only=ascii_only))
    elif show.isdecimal():
        if not 1 <= int(show) <= len(report.plans):
            raise UsageError(f"there is no plan {show}", hint=f"the plans are numbered 1 to {len(report.plans)}")
        output.result(terminal.render_plan(int(show), report, width=width, color=color, ascii_only=ascii_only))
    else:
        (effect,) = report.effects
        output.result(terminal.render_effect(effect, report, width=width, color=color, ascii_only=ascii_only))

"""``vramdoc exec``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from vramdoc.cli import output
from vramdoc.cli.config import Settings, find_project, resolve
from vramdoc.errors import UsageError

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells have it


def execute(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="The program and its arguments, after --.")
    ] = None,
    gpu: Annotated[str | None, typer.Option(metavar="NAME", help="The GPU that the program shall see.")] = None,
    count: Annotated[int, typer.Option(metavar="N", help="How many of them.")] = 1,
) -> None:
    """Run any program on null GPUs: it sees the named GPU, allocates as on it, and computes nothing."""
    settings = resolve(Settings(gpu=gpu), find_project(Path.cwd()))
    if not command:
        raise UsageError("no command to run", hint="vramdoc exec --gpu h100 -- python train.py")
    if settings.gpu is None:
        raise UsageError("no GPU was named", hint="vramdoc exec --gpu h100 -- ...; vramdoc gpus lists the names")
    if count < 1:
        raise UsageError(f"count must be at least 1, not {count}")
    _replace_process(command, _environment(settings.gpu, count))


def _environment(gpu: str, count: int) -> dict[str, str]:
    from vramdoc.hardware import find
    from vramdoc.nullgpu import environment
    from vramdoc.runner.devices import device_specs

    return environment(device_specs(find(gpu), count))


def _replace_process(command: list[str], environment: dict[str, str]) -> None:
    """Becomes ``command``; returns only by an exit, where that cannot be."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError:
        output.failure(UsageError(f"command not found: {command[0]}"))
        raise typer.Exit(NOT_FOUND) from None
    except OSError as error:
        output.failure(UsageError(f"cannot run {command[0]}: {error.strerror}"))
        raise typer.Exit(NOT_EXECUTABLE) from None

"""The application, its commands, and what becomes of their errors."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from vramdoc import __version__
from vramdoc.cli import output
from vramdoc.cli.advise import advise
from vramdoc.cli.baseline import baseline
from vramdoc.cli.check import check
from vramdoc.cli.diff import diff
from vramdoc.cli.env import env
from vramdoc.cli.exec import execute
from vramdoc.cli.gpus import gpus
from vramdoc.cli.profile import profile
from vramdoc.errors import UsageError, VramdocError

INTERRUPTED = 130  # what shells give a program that Ctrl-C ended
INTERNAL_ERROR = 2

# What Typer raises for a wrong flag or argument: ClickException, of the copy of Click that this Typer uses.
_ParserError = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="vramdoc",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: vramdoc profile model.py --gpu h100",
)
app.command(
    "profile",
    short_help="Run a training step: does it fit, and where does memory go?",
    epilog="\b\nExample: vramdoc profile model.py --gpu a100-40 --batch-size 16 -o report.html\n"
    "Next:    vramdoc gpus, for the names that --gpu takes",
)(profile)
app.command(
    "advise",
    short_help="Say what to change, what it saves and what it costs.",
    epilog="\b\nExample: vramdoc advise model.py --gpu a100-40 --budget 22GiB\n"
    "Next:    vramdoc advise model.py --gpu a100-40 --show checkpoint",
)(advise)
app.command(
    "check",
    short_help="Fail a build that needs more GPU memory than it may.",
    epilog="\b\nExample: vramdoc check model.py --gpu a100-40 --budget 22GiB\n"
    "Next:    vramdoc baseline update model.py --gpu a100-40",
)(check)
app.add_typer(
    baseline,
    name="baseline",
    short_help="Keep what was accepted, for check to compare with.",
    help="Keep what was accepted, for `vramdoc check --baseline` to compare with.",
    epilog="\b\nExample: vramdoc baseline update model.py --gpu a100-40\nNext:    vramdoc check --help",
)
app.command(
    "diff",
    short_help="Say what grew between two reports or revisions.",
    epilog="\b\nExample: vramdoc diff --rev main..HEAD model.py --gpu a100-40\n"
    "Next:    vramdoc check model.py --gpu a100-40 --budget 22GiB",
)(diff)
app.command(
    "gpus",
    short_help="List the GPUs that --gpu knows.",
    epilog="\b\nExample: vramdoc gpus --json\nNext:    vramdoc profile model.py --gpu h100",
)(gpus)
app.command(
    "env",
    short_help="Say what is installed, and what is missing.",
    epilog="\b\nExample: vramdoc env\nNext:    vramdoc profile model.py",
)(env)
app.command(
    "exec",
    short_help="Run any program on null GPUs.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="\b\nExample: vramdoc exec --gpu h100 --count 4 -- python train.py\n"
    "Next:    vramdoc profile model.py --gpu h100",
)(execute)


def _show_version(wanted: bool) -> None:
    if wanted:
        output.result(f"vramdoc {__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _vramdoc(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 -- its callback does the work
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Where the GPU memory of a PyTorch training step goes, and whether it fits. Needs no GPU."""
    if context.invoked_subcommand is None:
        output.result(context.get_help() + "\n")


def run(arguments: Sequence[str] | None) -> int:
    """Runs the application; every error becomes one message and an exit code."""
    try:
        code = app(args=None if arguments is None else list(arguments), prog_name="vramdoc", standalone_mode=False)
    except VramdocError as error:
        output.failure(error)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except Exception as error:  # noqa: BLE001 -- the last resort: an error of ours must not exit with 1
        if isinstance(error, _ParserError):
            return _usage(error)
        traceback.print_exc()
        output.failure(VramdocError("this is an error of vramdoc itself", hint="please report it with the lines above"))
        return INTERNAL_ERROR
    if code == INTERRUPTED:  # Typer's answer to Ctrl-C
        return _interrupted()
    return code if isinstance(code, int) else 0


def _interrupted() -> int:
    output.note("interrupted")
    return INTERRUPTED


def _usage(error: Exception) -> int:
    """An error of Typer's own, told as ours are."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "vramdoc"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    message = " ".join(message.split()).rstrip(".")
    told = UsageError(message[:1].lower() + message[1:], hint=f"{command} --help shows what it takes")
    output.failure(told)
    return told.exit_code

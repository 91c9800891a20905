"""Writing to stdout, stderr and files: results, messages, and what the terminal can show."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from vramdoc.errors import TargetError, UsageError, VramdocError
from vramdoc.render.style import clean

if TYPE_CHECKING:
    from vramdoc.render.terminal import ColorSystem

BROKEN_PIPE = 141  # what shells give a program that wrote to a closed pipe
_RED, _YELLOW, _DIM, _RESET = "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"


def result(text: str) -> None:
    """Writes ``text`` to stdout. A reader that went away (``| head``) ends the program without a word."""
    try:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # JSON is UTF-8 whatever the terminal's encoding
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more as it exits; that must not fail aloud.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(BROKEN_PIPE) from None


def failure(error: VramdocError) -> None:
    """Prints ``error`` to stderr: its message, the user's own traceback where there is one, the hint."""
    _message("error:", error.message, _RED)
    if isinstance(error, TargetError) and error.traceback:
        for line in error.traceback.rstrip().splitlines():
            _write("  " + clean(line))
    if error.hint:
        _message("hint:", error.hint, _DIM)


def warning(text: str) -> None:
    """Prints a warning to stderr."""
    _message("warning:", text, _YELLOW)


def note(text: str) -> None:
    """Prints a plain line to stderr."""
    _write(clean(text))


def color_system(stream: TextIO) -> ColorSystem | None:
    """The colours that ``stream`` can show: none where it is no terminal, or NO_COLOR or TERM=dumb asks for none."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return None
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "truecolor"
    return "256" if "256" in os.environ.get("TERM", "") else "standard"


def is_ascii(stream: TextIO) -> bool:
    """Whether ``stream`` can write no more than ASCII (or an encoding that lacks the characters of charts)."""
    return "utf" not in (stream.encoding or "").lower()


def width() -> int:
    """Columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


def check_writable(path: Path) -> None:
    """Raises :class:`UsageError` where ``path`` cannot be written, before a long run finds out."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder", hint="name a file in it")
    if not folder.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {folder}", hint="make the folder first")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="choose another place with -o") from None


def write(path: Path, text: str) -> None:
    """Writes ``path`` whole or not at all. Raises :class:`OSError`."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _message(head: str, text: str, color: str) -> None:
    first, *rest = text.strip().splitlines() or [""]
    shown = f"{color}{head}{_RESET}" if color_system(sys.stderr) else head
    _write(f"{shown} {clean(first)}")
    for line in rest:
        _write(f"  {clean(line)}")


def _write(line: str) -> None:
    encoding = sys.stderr.encoding or "ascii"
    with suppress(BrokenPipeError):
        print(line.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr, flush=True)

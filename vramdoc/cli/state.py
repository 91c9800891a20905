"""What vramdoc remembers in ``.vramdoc``: the last target and its report."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from vramdoc.cli import output
from vramdoc.errors import UsageError
from vramdoc.report import Report, encode

_FOLDER = ".vramdoc"
_REPORT = "report.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    """Content of ``last.json``."""

    target: str  # relative to the project's folder where it lies below it
    report: str = _REPORT  # file beside this one


def remember(project: Path, target: str, report: Report) -> None:
    """Writes the target and its report below ``project``; a folder that cannot be written is only a warning."""
    folder = project / _FOLDER
    absolute = Path(target).resolve()
    kept = absolute.relative_to(project) if absolute.is_relative_to(project) else absolute
    try:
        folder.mkdir(exist_ok=True)
        output.write(folder / ".gitignore", "*\n")
        output.write(folder / _REPORT, encode(report))
        output.write(folder / "last.json", msgspec.json.encode(_Last(target=str(kept))).decode() + "\n")
    except OSError as error:
        output.warning(f"cannot remember this report in {folder}: {error.strerror or error}")


def cache_folder(project: Path) -> Path:
    """Where runs are kept from one call to the next; there may be none yet, and none may be possible."""
    folder = project / _FOLDER
    with suppress(OSError):
        folder.mkdir(exist_ok=True)
        output.write(folder / ".gitignore", "*\n")
    return folder / "cache"


def last_target(project: Path) -> str:
    """The target of the last profile, as a path from here. Raises :class:`UsageError` where there is none."""
    file = project / _FOLDER / "last.json"
    try:
        last = msgspec.json.decode(file.read_bytes(), type=_Last)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(
            "nothing to profile: no target was given, and none is remembered",
            hint="name a Python file that defines build_model and make_batch: vramdoc profile model.py",
        ) from None
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}", hint="remove it, or name the target") from None
    return os.path.relpath(project / last.target)

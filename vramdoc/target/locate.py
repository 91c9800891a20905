"""From what the user typed to a file that can be loaded."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from vramdoc.errors import UsageError


def locate(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a target file. Raises :class:`UsageError` where it cannot be one."""
    file = Path(path).expanduser()
    if file.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a Python file in it that defines build_model and make_batch")
    if not file.exists():
        raise UsageError(f"no such file: {path}", hint=_nearest(file))
    if file.suffix != ".py":
        raise UsageError(f"{path} is not a Python file", hint="name a .py file that defines build_model and make_batch")
    if not os.access(file, os.R_OK):
        raise UsageError(f"{path} cannot be read", hint="check its permissions")
    return file.resolve()


def _nearest(file: Path) -> str:
    names = [entry.name for entry in file.parent.glob("*.py")] if file.parent.is_dir() else []
    close = difflib.get_close_matches(file.name, names, n=1)
    return f"did you mean {file.parent / close[0]}?" if close else "name the Python file that defines the model"

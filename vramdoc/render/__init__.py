"""Reports as text: a format is a pure function of the report. Each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from vramdoc.errors import UsageError
from vramdoc.report import Report, encode

SUFFIXES = (".json", ".txt", ".md", ".html", ".svg")
"""The endings of an output file, each of its own format."""

_RENDERERS = {
    ".txt": "vramdoc.render.terminal",
    ".md": "vramdoc.render.markdown",
    ".html": "vramdoc.render.html",
    ".svg": "vramdoc.render.svg",
}


def check_suffix(path: Path) -> str:
    """The format that ``path`` names by its ending; raises :class:`UsageError` for any other."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        reason = f"ends in {suffix!r}" if suffix else "has no ending"
        raise UsageError(
            f"cannot tell the format of {str(path)!r}: it {reason}", hint=f"end it in {', '.join(SUFFIXES)}"
        )
    return suffix


def render_as(report: Report, suffix: str) -> str:
    """``report`` in the format of one of :data:`SUFFIXES`."""
    if suffix == ".json":
        return encode(report)
    renderer: Callable[[Report], str] = import_module(_RENDERERS[suffix]).render
    return renderer(report)

"""The command line: the only place that prints or exits. Imports no torch, and rich only to draw."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs ``vramdoc`` with ``arguments`` (those of the process by default) and returns its exit code."""
    from vramdoc.cli.app import run

    return run(arguments)

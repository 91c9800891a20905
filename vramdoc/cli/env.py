"""``vramdoc env``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vramdoc.cli import output


def env(
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Say what is installed, whether the null GPU covers it, and what to do where something is missing."""
    from vramdoc.runner.environment import look

    found = look()
    if as_json:
        import msgspec

        output.result(msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n")
        return
    from vramdoc.render.terminal.environment import render_environment

    output.result(
        render_environment(
            found,
            width=output.width(),
            color=output.color_system(sys.stdout),
            ascii_only=output.is_ascii(sys.stdout),
        )
    )

"""``vramdoc gpus``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vramdoc.cli import output


def gpus(
    as_json: Annotated[bool, typer.Option("--json", help="Print every figure, with its source, as JSON.")] = False,
) -> None:
    """List the GPUs that --gpu knows."""
    from vramdoc.hardware import all_gpus

    if as_json:
        import msgspec

        listed = msgspec.json.encode(all_gpus(), enc_hook=dict)  # the read-only mappings of the tables
        output.result(msgspec.json.format(listed, indent=1).decode() + "\n")
        return
    from vramdoc.render.terminal.gpus import render_gpus

    output.result(
        render_gpus(
            all_gpus(),
            width=output.width(),
            color=output.color_system(sys.stdout),
            ascii_only=output.is_ascii(sys.stdout),
        )
    )

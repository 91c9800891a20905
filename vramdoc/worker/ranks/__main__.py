"""Runs a script as one rank of a world, or as one of several real processes.

::

    python -m vramdoc.worker.ranks --rank 0 --world-size 8 train.py --lr 1e-3
    torchrun --nproc-per-node 2 -m vramdoc.worker.ranks train.py --lr 1e-3

The process must already be on null GPUs (``vramdoc exec``).
"""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from vramdoc.errors import UsageError
from vramdoc.worker.ranks import World, install, install_processes


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m vramdoc.worker.ranks", description=__doc__)
    parser.add_argument("--rank", type=int, help="the rank to act as")
    parser.add_argument("--world-size", type=int, help="ranks in all")
    parser.add_argument("--local-world-size", type=int, default=1, help="ranks on one machine")
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if (options.rank is None) != (options.world_size is None):
        parser.error("--rank and --world-size belong together")
    try:
        if options.rank is None:
            install_processes()
        else:
            install(World(rank=options.rank, size=options.world_size, local_size=options.local_world_size))
    except UsageError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    sys.argv = [options.script, *options.args]
    sys.path[0] = str(Path(options.script).resolve().parent)
    runpy.run_path(options.script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

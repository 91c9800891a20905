"""Starts ranks as forks of a process that has imported torch and not touched CUDA."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from vramdoc.worker.ranks import World, acting_as, among_processes


class Ranks:
    """Forks that each write what they found to a file of their own."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp())
        self._running: dict[str, int] = {}

    def start(self, name: str, work: Callable[[], Any], world: AbstractContextManager[None]) -> None:
        child = os.fork()
        if child:
            self._running[name] = child
            return
        status = 1
        try:
            with world:
                found = work()
            (self._folder / name).write_text(json.dumps(found))
            status = 0
        except Exception:  # noqa: BLE001 - the end of a forked process: nothing may run on in it
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def join(self) -> dict[str, Any]:
        for name, child in self._running.items():
            assert os.waitpid(child, 0)[1] == 0, name
        found = {name: json.loads((self._folder / name).read_text()) for name in self._running}
        self._running.clear()
        return found


def together(name: str, work: Callable[[], Any], size: int, local_size: int | None = None) -> dict[str, Any]:
    """``size`` real processes, as ``torchrun`` would start them on machines of ``local_size``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = Ranks()
    for rank in range(size):
        world = World(rank=rank, size=size, local_size=local_size or size)
        os.environ.update(world.environment() | {"MASTER_PORT": port})
        ranks.start(f"{name} {rank}", work, among_processes())
    return ranks.join()


def alone(name: str, work: Callable[[], Any], size: int) -> dict[str, Any]:
    """The first and the last rank, each without peers."""
    ranks = Ranks()
    for rank in (0, size - 1):
        ranks.start(f"{name} {rank}", work, acting_as(World(rank=rank, size=size)))
    return ranks.join()

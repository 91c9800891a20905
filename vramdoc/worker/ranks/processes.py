"""Several real processes, each a rank on null GPUs of its own.

A null GPU's NCCL moves nothing and waits for nobody. Tensors may well stay empty, but objects and barriers
steer programs: they travel over a gloo group that every NCCL group gets beside it on first use.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch.distributed import ProcessGroup
from torch.distributed import distributed_c10d as c10d
from torch.distributed.optim import ZeroRedundancyOptimizer

from vramdoc.errors import UsageError
from vramdoc.worker.ranks import finished, objects, zero
from vramdoc.worker.ranks.patching import leave_groups, replace_collective, variables
from vramdoc.worker.ranks.world import QUIET_NCCL


def install_processes() -> None:
    """Prepares this process, started by ``torchrun`` or alike, for the rest of its life."""
    if not {"RANK", "WORLD_SIZE"} <= os.environ.keys():
        raise UsageError(
            "RANK and WORLD_SIZE are not set",
            hint="start the ranks with torchrun, or give --rank and --world-size",
        )
    stack = ExitStack()
    stack.enter_context(among_processes())
    atexit.register(stack.close)


@contextmanager
def among_processes() -> Iterator[None]:
    """The same for the length of a ``with`` block; its process groups end with it."""
    companions = _Companions()
    with ExitStack() as stack:
        stack.enter_context(variables(QUIET_NCCL))
        finished.install(stack)
        objects.install(stack, companions.carry)
        replace_collective(stack, "barrier", companions.meet(c10d.barrier))
        zero.install(stack, companions.exchange_state)
        stack.callback(leave_groups)
        yield


class _Companions:
    """The gloo groups beside the NCCL groups."""

    def __init__(self) -> None:
        self._groups: dict[ProcessGroup, ProcessGroup] = {}

    def of(self, group: ProcessGroup) -> ProcessGroup:
        """``group`` itself where it can reach the host, else its companion. All members must call this."""
        if not objects.on_device(group):
            return group
        if group not in self._groups:
            self._groups[group] = _gloo_beside(group)
        return self._groups[group]

    def carry(self, _name: str, original: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        arguments["group"] = self.of(arguments["group"])
        if "device" in arguments:
            arguments["device"] = None
        return original(**arguments)

    def exchange_state(self, optimizer: ZeroRedundancyOptimizer, obj: Any, sender: int) -> Any:
        carried = [zero.on_host(obj)]
        c10d.broadcast_object_list(carried, src=sender, group=self.of(optimizer.process_group))
        return carried[0]

    def meet(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A barrier that waits for the processes, and then takes on the device what NCCL's would."""

        def barrier(group: ProcessGroup | None = None, *args: Any, **kwargs: Any) -> Any:
            if not c10d._rank_not_in_group(group):
                group = group or c10d._get_default_group()
                companion = self.of(group)
                if companion is not group:
                    companion.barrier().wait()
            return original(group, *args, **kwargs)

        return barrier


def _gloo_beside(group: ProcessGroup) -> ProcessGroup:
    """A gloo group of the same members, with the same ranks."""
    members = c10d.get_process_group_ranks(group)
    companion: Any
    name: Any = f"{group.group_name}:objects"
    companion, _ = c10d._new_process_group_helper(
        group.size(),
        group.rank(),
        members,
        c10d.Backend.GLOO,
        c10d._get_process_group_store(group),
        name,
        timeout=c10d._get_default_timeout(c10d.Backend.GLOO),
    )
    c10d._world.pg_group_ranks[companion] = {member: rank for rank, member in enumerate(members)}
    return companion  # type: ignore[no-any-return]

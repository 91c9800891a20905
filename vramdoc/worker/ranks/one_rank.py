"""One process acts as one rank of a world whose other ranks do not exist.

CUDA collectives go through torch's own NCCL process group, over the null GPU's NCCL, so that streams, buckets
and kept tensors are the real ones. Collectives on the host go to torch's "fake" backend. Objects never leave
the process: a rank receives its own. What cannot be had this way is what a peer alone knows: a pipeline stage
asks its neighbour for shapes, a checkpoint's plan is made of every rank's, so pipelines and distributed
checkpoints need real processes (:mod:`vramdoc.worker.ranks.processes`).
"""

from __future__ import annotations

import atexit
import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import FakeProcessGroup, PrefixStore, Store
from torch.distributed import Backend, ProcessGroup
from torch.distributed import distributed_c10d as c10d
from torch.distributed.optim import ZeroRedundancyOptimizer

from vramdoc.errors import UsageError
from vramdoc.worker.ranks import finished, foreach, objects, zero
from vramdoc.worker.ranks.patching import leave_groups, replace, replace_collective, variables
from vramdoc.worker.ranks.store import PeerlessStore
from vramdoc.worker.ranks.world import QUIET_NCCL, World

HOST_BACKEND = "vramdoc_host"
# Backends that would look for peers over the network. NCCL is served by the null GPU.
_NEEDS_PEERS = frozenset({"gloo", "mpi", "ucc"})


def install(world: World) -> None:
    """Makes this process rank ``world.rank`` for the rest of its life; call it before the user's code."""
    stack = ExitStack()
    stack.enter_context(acting_as(world))
    atexit.register(stack.close)


@contextmanager
def acting_as(world: World) -> Iterator[None]:
    """The same for the length of a ``with`` block; its process groups end with it."""
    _register_host_backend()
    store = PeerlessStore(size=world.size)
    with ExitStack() as stack:
        stack.enter_context(variables(world.environment() | QUIET_NCCL))
        replace(stack, c10d, "rendezvous", _rendezvous(world, store))
        replace(stack, c10d, "_new_process_group_helper", _group_maker(world, store))
        replace(stack, dist, "TCPStore", partial(PeerlessStore, size=world.size))
        replace_collective(stack, "monitored_barrier", _monitored_barrier)
        finished.install(stack)
        foreach.install(stack)
        objects.install(stack, _carry)
        zero.install(stack, _exchange_state)
        stack.callback(leave_groups)
        yield


def _rendezvous(world: World, store: Store) -> Callable[..., Iterator[tuple[Store, int, int]]]:
    def rendezvous(*_args: Any, **_kwargs: Any) -> Iterator[tuple[Store, int, int]]:
        yield store, world.rank, world.size

    return rendezvous


def _group_maker(world: World, store: Store) -> Callable[..., Any]:
    """Every process group is made by this one function of torch, whichever way a program asks for it."""
    original = c10d._new_process_group_helper

    def make(
        size: int,
        rank: int | None,
        members: list[int],
        backend: str,
        shared: Store,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if not members:  # the default group: the world is ours, even where the program brought its own store
            size, rank, shared = world.size, world.rank, PrefixStore("default_pg", store)
        served = _without_peers(backend)
        group: Any
        group_store: Any
        group, group_store = original(size, rank, members, served, shared, *args, **kwargs)
        if served != backend and group is not c10d.GroupMember.NON_GROUP_MEMBER:
            # Programs ask for the backend's name and choose by it: they shall see the one they gave.
            c10d._world.pg_map[group] = (Backend(backend), group_store)
            c10d._world.pg_backend_config[group] = str(c10d.BackendConfig(Backend(backend)))
        return group, group_store

    return make


def _without_peers(backend: str) -> str:
    """``backend`` with the host backend in the place of those that connect to peers."""
    by_device = c10d.BackendConfig(Backend(backend)).get_device_backend_map()
    if _NEEDS_PEERS.isdisjoint(by_device.values()):
        return backend
    return ",".join(f"{device}:{HOST_BACKEND if name in _NEEDS_PEERS else name}" for device, name in by_device.items())


def _register_host_backend() -> None:
    if HOST_BACKEND not in Backend.backend_list:
        Backend.register_backend(HOST_BACKEND, _host_group, extended_api=True, devices=["cpu", "cuda"])


def _host_group(options: Any, _backend_options: Any) -> Any:
    # Options that the program made for gloo are not passed on: they would not be understood.
    return FakeProcessGroup._create_internal(options.group_rank, options.group_size)


def _monitored_barrier(*_args: Any, **_kwargs: Any) -> None:
    """Nobody can be late."""


def _carry(name: str, _original: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    group: ProcessGroup = arguments["group"]
    match name:
        case "all_gather_object":
            _fill(arguments["object_list"], arguments["obj"], group.size())
        case "gather_object" if objects.is_root(arguments, "dst"):
            _fill(arguments["object_gather_list"], arguments["obj"], group.size())
        case "scatter_object_list" if arguments["scatter_object_input_list"]:
            arguments["scatter_object_output_list"][0] = arguments["scatter_object_input_list"][group.rank()]
        case "recv_object_list" | "scatter_object_list":
            raise UsageError(
                f"rank {c10d.get_rank()} waits for objects of a peer ({name}), and only this rank runs:"
                " pipelines and distributed checkpoints need each rank as a process",
                hint="start the ranks with: torchrun --nproc-per-node RANKS -m vramdoc.worker.ranks SCRIPT",
            )
    return None  # what was sent or broadcast is already here


def _exchange_state(optimizer: ZeroRedundancyOptimizer, obj: Any, sender: int) -> Any:
    if sender == c10d.get_rank():
        return obj
    return zero.state_as_on(optimizer, c10d.get_group_rank(optimizer.process_group, sender))


def _fill(received: list[Any], item: Any, ranks: int) -> None:
    """Every rank's object, had all of them sent what this one did: copies, as from a real collective."""
    pickled = pickle.dumps(item)
    for rank in range(ranks):
        received[rank] = pickle.loads(pickled)

"""Asks for every kind of group, as several ranks of several worlds, and writes what it got."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.distributed_c10d import _store_based_barrier
from torch.distributed.elastic.utils.store import barrier as elastic_barrier

from vramdoc.errors import UsageError
from vramdoc.worker.ranks import World, acting_as

WORLDS = ((0, 2), (3, 8), (511, 512))


def described(group: Any) -> list[int]:
    members = dist.get_process_group_ranks(group)
    return [group.size(), group.rank(), members[0], members[-1]]


def groups(size: int) -> dict[str, Any]:
    half = size // 2
    mesh = init_device_mesh("cuda", (2, half), mesh_dim_names=("outer", "inner"))
    evens = dist.new_group(range(0, size, 2))
    return {
        "world": described(dist.group.WORLD),
        "outer": described(mesh["outer"].get_group()),
        "inner": described(mesh["inner"].get_group()),
        "pair": described(dist.new_subgroups(2)[0]),
        "split": described(dist.split_group(split_ranks=[list(range(half)), list(range(half, size))])),
        "evens": None if evens is dist.GroupMember.NON_GROUP_MEMBER else described(evens),
    }


def backends() -> dict[str, Any]:
    """Names as the program gave them, and what its tensors see on the host and the device."""
    gloo = dist.new_group(backend="gloo")
    both = dist.new_group(backend="cpu:gloo,cuda:nccl")
    host, device = torch.ones(3), torch.ones(3, device="cuda")
    for group, tensor in ((gloo, host), (both, host), (both, device), (None, device)):
        dist.all_reduce(tensor, group=group)
    dist.barrier()
    dist.monitored_barrier(gloo)
    gathered = torch.empty(dist.get_world_size() * 3, device="cuda")
    dist.all_gather_into_tensor(gathered, device)
    return {"default": dist.get_backend(), "gloo": dist.get_backend(gloo), "both": dist.get_backend(both)}


def objects(rank: int, size: int) -> dict[str, Any]:
    torch.cuda.reset_peak_memory_stats()
    before, mine = torch.cuda.memory_allocated(), {"rank": rank}
    everyone: list[Any] = [None] * size
    dist.all_gather_object(everyone, mine)
    peak = torch.cuda.max_memory_allocated() - before
    at_root: list[Any] | None = [None] * size if rank == 0 else None
    dist.gather_object(mine, at_root)
    told, handed = [mine], [None]
    dist.broadcast_object_list(told, src=0)
    dist.scatter_object_list(handed, [{"to": to} for to in range(size)], src=0)
    dist.send_object_list([mine], dst=(rank + 1) % size)
    try:
        dist.recv_object_list([None], src=(rank + 1) % size)
        refusal = ""
    except UsageError as error:
        refusal = f"{error.message}: {error.hint}"
    return {
        "everyone": everyone == [mine] * size,
        "copies": everyone[0] is not everyone[1],
        "at_root": at_root == ([mine] * size if rank == 0 else None),
        "told": told,
        "handed": handed,
        "refusal": refusal,
        "peak": peak,
    }


def store(rank: int, size: int) -> list[int]:
    """Barriers that count arrivals end, though nobody else arrives; answers what was counted."""
    shared = dist.TCPStore("peer.invalid", 29500, size, is_master=False)
    _store_based_barrier(rank, shared, "group", size, timedelta(seconds=5))
    elastic_barrier(shared, size, "barrier")
    return [shared.add("arrived", 1), shared.add("arrived", 0)]


def in_world(ask: Callable[[], Any], rank: int, size: int) -> Any:
    with acting_as(World(rank=rank, size=size)):
        dist.init_process_group(device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
        return ask()


def main() -> None:
    found = {
        f"{rank}/{size}": in_world(
            lambda rank=rank, size=size: {  # type: ignore[misc]
                "groups": groups(size),
                "backends": backends(),
                "objects": objects(rank, size),
                "store": store(rank, size),
            },
            rank,
            size,
        )
        for rank, size in WORLDS
    }
    found["after"] = {"initialized": dist.is_initialized(), "RANK": os.environ.get("RANK")}
    Path(sys.argv[1]).write_text(json.dumps(found))


main()

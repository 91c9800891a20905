"""NCCL on the null GPU: one process as one rank, its collectives and DDP's start-up check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

OnNullGpu = Callable[..., Any]

COLLECTIVES = """
import torch
import torch.distributed as dist
from vramdoc.worker.ranks import World, install

RANK, SIZE, BOUND = {rank}, {size}, {bound}
install(World(rank=RANK, size=SIZE))
dist.init_process_group("nccl", device_id=torch.device("cuda:0") if BOUND else None)
found = {{}}

def sent(values):
    return torch.tensor(values, device="cuda")

def room(count):
    return torch.empty(count, dtype=torch.int64, device="cuda")

out, mine = room(2 * SIZE), sent([5, 6])
dist.all_gather_into_tensor(out, mine)
found["all_gather"] = out.tolist()
parts, mine = [room(2) for _ in range(SIZE)], sent([5, 6])
dist.all_gather(parts, mine)
found["all_gather list"] = [part.tolist() for part in parts]
mine = sent([7, 8])
dist.broadcast(mine, 0)
found["broadcast"] = mine.tolist()
mine = sent([7, 8])
dist.all_reduce(mine, op=dist.ReduceOp.MAX)
found["all_reduce"] = mine.tolist()
out, whole = room(2), sent(list(range(2 * SIZE)))
dist.reduce_scatter_tensor(out, whole, op=dist.ReduceOp.AVG)
found["reduce_scatter"] = out.tolist()
for name, splits in (("all_to_all", ()), ("all_to_all split", ([2] * SIZE, [2] * SIZE))):
    out, whole = room(2 * SIZE), sent(list(range(2 * SIZE)))
    dist.all_to_all_single(out, whole, *splits)
    found[name] = out.tolist()
dist.gather(mine, parts if RANK == 0 else None, 0)
dist.reduce(mine, 0)
dist.scatter(mine, parts if RANK == 0 else None, 0)
if SIZE > 1:
    ring = [dist.P2POp(dist.isend, mine, (RANK + 1) % SIZE), dist.P2POp(dist.irecv, room(2), (RANK - 1) % SIZE)]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
dist.barrier()

group = dist.new_group(list(range(RANK % 2, SIZE, 2))) if SIZE > 1 else None
for members in (None, group):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8).cuda(), process_group=members)
    model(torch.randn(2, 8, device="cuda")).sum().backward()
found["ddp"] = model.module.weight.grad is not None
found["version"] = list(torch.cuda.nccl.version())
dist.destroy_process_group()
emit(found)
"""


@pytest.mark.parametrize(("rank", "size", "bound"), [(0, 1, False), (3, 8, False), (5, 8, True)])
def test_collectives_carry_what_a_rank_knows(on_null_gpu: OnNullGpu, rank: int, size: int, bound: bool) -> None:
    """DDP compares its parameters' shapes with all ranks' at start-up, also within a group split off the world."""
    found = on_null_gpu(COLLECTIVES.format(rank=rank, size=size, bound=bound))

    own_part = [2 * rank, 2 * rank + 1]
    assert found.pop("version")[0] == 2
    assert found == {
        "all_gather": [5, 6] * size,
        "all_gather list": [[5, 6]] * size,
        "broadcast": [7, 8],
        "all_reduce": [7, 8],
        "reduce_scatter": own_part,
        "all_to_all": own_part * size,
        "all_to_all split": own_part * size,
        "ddp": True,
    }


SPLIT = """
import ctypes
from torch.distributed.distributed_c10d import _process_group_color

engine = ctypes.CDLL(None)  # it is preloaded

class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]

def numbers(communicator):
    size, rank = ctypes.c_int(), ctypes.c_int()
    engine.ncclCommCount(communicator, ctypes.byref(size))
    engine.ncclCommUserRank(communicator, ctypes.byref(rank))
    return [size.value, rank.value]

def world(size, rank):
    communicator = ctypes.c_void_p()
    assert engine.ncclCommInitRank(ctypes.byref(communicator), size, UniqueId(), rank) == 0
    return communicator

def split(size, ranks, key):
    part = ctypes.c_void_p()
    color = _process_group_color(ranks)
    assert engine.ncclCommSplit(world(size, ranks[key]), color, key, ctypes.byref(part), None) == 0
    return numbers(part)

left_out, fewer = ctypes.c_void_p(), ctypes.c_void_p()
engine.ncclCommSplit(world(8, 3), -1, 0, ctypes.byref(left_out), None)
engine.ncclCommShrink(world(8, 5), (ctypes.c_int * 2)(1, 7), 2, ctypes.byref(fewer), None, 0)
memory = ctypes.c_void_p()
allocated = engine.ncclMemAlloc(ctypes.byref(memory), ctypes.c_size_t(1 << 20))
emit({
    "row": split(512, list(range(64, 72)), 7),
    "column": split(512, list(range(3, 512, 8)), 1),
    "single": split(8, [5], 0),
    "uneven": split(8, [1, 4, 6], 1),
    "left out": left_out.value,
    "shrunk": numbers(fewer),
    "wrong rank": engine.ncclCommInitRank(ctypes.byref(memory), 4, UniqueId(), 4),
    "memory": [allocated, engine.ncclMemFree(memory)],
})
"""


def test_split_and_shrunk_communicators_know_their_size(on_null_gpu: OnNullGpu) -> None:
    """A split is decided by all ranks' colours, of which one is here: torch's own colour gives the group away."""
    assert on_null_gpu(SPLIT) == {
        "row": [8, 7],
        "column": [64, 1],
        "single": [1, 0],
        "uneven": [2, 1],  # not evenly spaced: at least this many
        "left out": None,
        "shrunk": [6, 4],
        "wrong rank": 4,
        "memory": [0, 0],
    }

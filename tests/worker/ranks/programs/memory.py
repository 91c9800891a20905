"""Builds small models under every kind of parallelism, as several ranks of several worlds.

Writes to the file of its first argument what each thing added to the allocated bytes: the test knows what it
must be.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from models import Transformer
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from vramdoc.worker.ranks import World, acting_as

WORLDS = ((0, 2), (1, 2), (0, 8), (3, 8), (7, 8), (0, 512), (255, 512), (511, 512))
Figures = dict[str, Any]


def held() -> int:
    torch.cuda.synchronize()
    gc.collect()
    return torch.cuda.memory_allocated()


def train(model: nn.Module, batch: Tensor, steps: int = 2) -> None:
    for _ in range(steps):
        model.zero_grad()
        model(batch).float().sum().backward()


def ddp(view: bool) -> Figures:
    start, batch = held(), torch.zeros(4, 300, device="cuda")
    model = nn.Sequential(*[nn.Linear(300, 300, bias=False) for _ in range(6)]).cuda()
    model = DistributedDataParallel(model, gradient_as_bucket_view=view)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    train(model, batch)
    del batch
    after_backward = held() - start
    torch.cuda.reset_peak_memory_stats()
    optimizer.step()
    torch.cuda.synchronize()
    return {"held": after_backward, "step_peak": torch.cuda.max_memory_allocated() - start}


def sharded(reshard: bool, policy: MixedPrecisionPolicy, mesh: Any = None) -> Figures:
    start = held()
    model = Transformer()
    for module in (*model.blocks, model):
        fully_shard(module, mesh=mesh, reshard_after_forward=reshard, mp_policy=policy)
    model.cuda()
    batch = torch.zeros(2, 16, dtype=torch.long, device="cuda")
    train(model, batch)
    gradients_and_parameters = held() - start
    model.zero_grad()
    parameters = held() - start
    train(model, batch)
    before = held()
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.step()
    states = held() - before
    model.zero_grad()
    before = held()
    with torch.no_grad():
        model(batch)
    return {
        "parameters": parameters - 512,  # the batch
        "gradients": gradients_and_parameters - parameters,
        "states": states,
        "unsharded": held() - before,
    }


def hsdp() -> Figures:
    mesh = init_device_mesh("cuda", (dist.get_world_size() // 2, 2), mesh_dim_names=("replicate", "shard"))
    return sharded(True, MixedPrecisionPolicy(), mesh) | {"shard_rank": mesh["shard"].get_local_rank()}


def fsdp1() -> Figures:
    start, batch = held(), torch.zeros(2, 16, dtype=torch.long, device="cuda")
    model = FullyShardedDataParallel(Transformer(), device_id=0)
    train(model, batch)
    del batch
    both = held() - start
    model.zero_grad()
    return {"parameters": held() - start, "gradients": both - (held() - start)}


def zero() -> Figures:
    model = DistributedDataParallel(nn.Sequential(*[nn.Linear(n, 30, bias=False) for n in (100, 30, 30, 30)]).cuda())
    first = nn.Linear(30, 100, bias=False).cuda()
    before = held()
    parameters = [*model.parameters(), *first.parameters()]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    gradients = held() - before
    optimizer = ZeroRedundancyOptimizer(parameters, torch.optim.Adam, lr=0.1)
    before = held()
    optimizer.step()
    states = held() - before
    optimizer.consolidate_state_dict(to=0)
    consolidated = len(optimizer.state_dict()["state"]) if dist.get_rank() == 0 else None
    return {"gradients": gradients, "states": states, "consolidated": consolidated, "left": held() - before - states}


def tensor_parallel() -> Figures:
    start, batch = held(), torch.zeros(4, 64, device="cuda")
    model = nn.Sequential(nn.Linear(64, 1536), nn.ReLU(), nn.Linear(1536, 64)).cuda()
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    model = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    train(model, batch)
    del batch
    both = held() - start
    model.zero_grad()
    return {"parameters": held() - start, "gradients": both - (held() - start)}


CASES: dict[str, Callable[[], Figures]] = {
    "ddp": lambda: ddp(False),
    "ddp_view": lambda: ddp(True),
    "fully_shard": lambda: sharded(True, MixedPrecisionPolicy()),
    "fully_shard_kept": lambda: sharded(False, MixedPrecisionPolicy()),
    "fully_shard_bf16": lambda: sharded(
        False, MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    ),
    "hsdp": hsdp,
    "fsdp1": fsdp1,
    "zero": zero,
    "tensor_parallel": tensor_parallel,
}


def main() -> None:
    warm = nn.Linear(8, 8).cuda()  # the workspaces of both threads are not the models'
    warm(torch.zeros(8, 8, device="cuda")).sum().backward()
    del warm
    found: dict[str, Figures] = {name: {} for name in CASES}
    for rank, size in WORLDS:
        for name, case in CASES.items():
            # A world of its own for each: NCCL's group keeps the last bucket of a DDP that is gone.
            with acting_as(World(rank=rank, size=size)):
                dist.init_process_group()
                gc.freeze()  # what torch has loaded by now need not be walked each time
                found[name][f"{rank}/{size}"] = case()
    Path(sys.argv[1]).write_text(json.dumps(found))


main()

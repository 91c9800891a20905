"""Trains as real ranks that talk to each other, and as one rank alone, and writes every rank's memory.

torch is imported once; each rank is a fork that has not touched CUDA.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # which DDP and fully_shard import: once, before the forks
import torch.distributed as dist
from launch import alone, together
from models import Block, Transformer
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.parallel import DistributedDataParallel


def train(wrap: Callable[[nn.Module], nn.Module]) -> dict[str, int]:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, ["settings", "of", "a", "run"])
    model = wrap(Transformer())
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        dist.barrier()
        model(torch.zeros(2, 16, dtype=torch.long, device=device)).float().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    return {
        "allocated": torch.cuda.memory_allocated(),
        "peak": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    }


def replicated(model: nn.Module) -> nn.Module:
    return DistributedDataParallel(model.cuda())


def compiled(model: nn.Module) -> nn.Module:
    return torch.compile(replicated(model), backend="eager")  # type: ignore[return-value]


def flat(model: nn.Module) -> nn.Module:
    device = int(os.environ["LOCAL_RANK"])
    return FullyShardedDataParallel(
        model, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=device, use_orig_params=True
    )


def sharded(model: nn.Module) -> nn.Module:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for module in (*model.blocks, model):  # type: ignore[misc]
        fully_shard(module, mp_policy=policy)
    return model.cuda()


def talk() -> dict[str, Any]:
    """What only real processes can know of each other."""
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    everyone: list[Any] = [None] * size
    dist.all_gather_object(everyone, rank)
    at_last: list[Any] | None = [None] * size if rank == size - 1 else None
    dist.gather_object(rank, at_last, dst=size - 1)
    told, handed, passed = [f"from {rank}"], [None], [None]
    dist.broadcast_object_list(told, src=1)
    dist.scatter_object_list(handed, [10, 11] if rank == 0 else None, src=0)
    if rank == 0:
        dist.send_object_list(["shape"], dst=1)
    else:
        dist.recv_object_list(passed, src=0)
    model = replicated(nn.Sequential(nn.Linear(8, 30), nn.Linear(30, 2)))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)
    model(torch.zeros(1, 8, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.consolidate_state_dict(to=1)
    states = len(optimizer.state_dict()["state"]) if rank == 1 else None
    return {
        "everyone": everyone,
        "at_last": at_last,
        "told": told,
        "handed": handed,
        "passed": passed,
        "states": states,
        "backend": dist.get_backend(),
    }


def pipeline() -> dict[str, int]:
    """Two stages, which ask each other for shapes before they start; answers bytes of gradients."""
    rank, device = int(os.environ["RANK"]), torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    widths = ((64, 256), (256, 32))[rank]
    stage = PipelineStage(nn.Linear(*widths).to(device), rank, 2, device)
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda output, target: (output - target).sum())
    given = {"target": torch.zeros(8, 32, device=device)} if rank else {}
    schedule.step(*(() if rank else (torch.zeros(8, 64, device=device),)), **given)
    return {"gradients": sum(parameter.grad.nbytes for parameter in stage.submod.parameters())}


def main() -> None:
    found = {}
    for name, wrap, size in (
        ("ddp 2", replicated, 2),
        ("ddp compiled 2", compiled, 2),
        ("fully_shard 2", sharded, 2),
        ("fully_shard 4", sharded, 4),
        ("fsdp1 2", flat, 2),
    ):
        found[name] = {
            "together": together("rank", lambda wrap=wrap: train(wrap), size),  # type: ignore[misc]
            "alone": alone("rank", lambda wrap=wrap: train(wrap), size),  # type: ignore[misc]
        }
    found["talk"] = together("rank", talk, 2)
    found["pipeline"] = together("rank", pipeline, 2)
    Path(sys.argv[1]).write_text(json.dumps(found))


main()

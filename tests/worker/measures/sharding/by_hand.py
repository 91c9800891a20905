"""Every strategy as a training script of its own, run by real ranks on null GPUs: ``by_hand.py RESULT``.

Writes the allocated and reserved peak of every rank. Only the launch and the meeting of the ranks are vramdoc's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # which DDP and fully_shard import: once, before the forks
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.optim import AdamW
from torch.utils.checkpoint import checkpoint

from tests.worker.measures.sharding import small
from tests.worker.measures.targets import convnet
from tests.worker.ranks.programs.launch import together

Wrap = Callable[[nn.Module], nn.Module]
Optimize = Callable[[nn.Module], Any]


def adamw(model: nn.Module) -> Any:
    return AdamW(model.parameters())


def train(wrap: Wrap, optimize: Optimize = adamw) -> list[int]:
    """Four steps of a plain loop; allocated and reserved peak."""
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    model = wrap(small.build_model())
    optimizer = optimize(model)
    for _ in range(4):
        batch = small.make_batch(small.BATCH_SIZE).cuda()
        loss = small.compute_loss(model, batch)
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        del batch, loss
    torch.cuda.synchronize()
    return [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()]


def train_convnet(wrap: Wrap) -> list[int]:
    """The same for a network with batch norm, whose gradients are kept as zeros."""
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    model = wrap(convnet.build_model())
    optimizer = convnet.make_optimizer(model)
    for _ in range(4):
        images, labels = convnet.make_batch(convnet.BATCH_SIZE)
        batch = images.cuda(), labels.cuda()
        loss = convnet.compute_loss(model, batch)
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        del images, labels, batch, loss
    torch.cuda.synchronize()
    return [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()]


def ddp(model: nn.Module, **options: Any) -> nn.Module:
    return DistributedDataParallel(model.cuda(), **options)


def zero1(model: nn.Module) -> Any:
    return ZeroRedundancyOptimizer(model.parameters(), AdamW)


def sharded(model: nn.Module, **options: Any) -> nn.Module:
    for block in model.get_submodule("blocks").children():
        fully_shard(block, **options)
    fully_shard(model, **options)
    return model


def checkpointed(model: Any) -> nn.Module:
    for block in model.blocks:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    return sharded(model)


def hybrid(model: nn.Module) -> nn.Module:
    return sharded(model, mesh=init_device_mesh("cuda", (2, 2), mesh_dim_names=("outer", "inner")))


def split(model: nn.Module) -> nn.Module:
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    for block in model.get_submodule("blocks").children():
        columns = {name: ColwiseParallel() for name in ("query", "key", "value", "up")}
        parallelize_module(block, mesh, columns | {"out": RowwiseParallel(), "down": RowwiseParallel()})
    return model.cuda()


def by_kind(model: nn.Module) -> Any:
    parameters = list(model.parameters())
    kinds = (True, False)
    return AdamW([{"params": [each for each in parameters if isinstance(each, DTensor) is kind]} for kind in kinds])


def main() -> None:
    bf16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    cases = {
        "ddp": (2, 2, partial(train, ddp)),
        "ddp + ddp_bucket_view": (2, 2, partial(train, partial(ddp, gradient_as_bucket_view=True))),
        "convnet: ddp": (2, 2, partial(train_convnet, ddp)),
        "convnet: ddp + ddp_bucket_view": (2, 2, partial(train_convnet, partial(ddp, gradient_as_bucket_view=True))),
        "zero1": (2, 2, partial(train, ddp, zero1)),
        "zero2": (2, 2, partial(train, partial(sharded, reshard_after_forward=False))),
        "zero3": (2, 2, partial(train, sharded)),
        "checkpoint + zero3": (2, 2, partial(train, checkpointed)),
        "zero3 + fsdp_bf16": (2, 2, partial(train, partial(sharded, mp_policy=bf16))),
        # What the optimizer does on the host changes nothing on the GPU.
        "zero3 + fsdp_offload": (2, 2, partial(train, partial(sharded, offload_policy=CPUOffloadPolicy()))),
        "tensor_parallel": (2, 2, partial(train, split, by_kind)),
        "zero3 on 4": (4, 4, partial(train, sharded)),
        "zero3 on 8": (8, 8, partial(train, sharded)),
        "hsdp on 4": (4, 2, partial(train, hybrid)),
    }
    found = {name: list(together("rank", work, *world).values()) for name, (*world, work) in cases.items()}
    Path(sys.argv[1]).write_text(json.dumps(found))


main()

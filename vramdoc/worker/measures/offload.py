"""Measures that keep activations or parameters in host memory."""

from __future__ import annotations

import copy
import os
from collections import defaultdict
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.optim import Optimizer

from vramdoc.errors import MeasureError
from vramdoc.units import format_bytes
from vramdoc.worker.measures.activations import repeated
from vramdoc.worker.measures.registry import measure
from vramdoc.worker.measures.snippet import Snippet, on_model, require_plain_update, run
from vramdoc.worker.training import Training


@measure("offload_activations")
def offload_activations(training: Training) -> None:
    """What autograd saves lies in pinned host memory until backward."""
    if "compute_loss" in training.names:
        body = """
def compute_loss(model, batch):
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        return compute_loss_before_offload_activations(model, batch)
"""
        run(training, Snippet(measure="offload_activations", body=body, wraps=("compute_loss",)))
        return
    body = """
def build_model():
    model = build_model_before_offload_activations()
    forward = model.forward

    def offloading_forward(*inputs, **options):
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            return forward(*inputs, **options)

    model.forward = offloading_forward
    return model
"""
    run(training, Snippet(measure="offload_activations", body=body, wraps=("build_model",)))


@measure("offload_parameters")
def offload_parameters(training: Training, block: str | None = None) -> None:
    """Parameters, gradients and optimizer state lie in host memory; a block is on the GPU while it runs.

    It is torch's fully_shard with a CPUOffloadPolicy, over a process group of this process alone.
    """
    if torch.distributed.is_initialized():
        raise MeasureError("there are several processes: their sharding can offload to the host by itself")
    require_plain_update(training)

    def make(model: nn.Module) -> Snippet:
        found = repeated(model, block)
        require_host_memory(model)
        body = f"""
def build_model():
    model = build_model_before_offload_parameters()
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl", rank=0, world_size=1, store=torch.distributed.HashStore())
    offload = torch.distributed.fsdp.CPUOffloadPolicy()
    for block in {found.code}:
        torch.distributed.fsdp.fully_shard(block, offload_policy=offload)
    return torch.distributed.fsdp.fully_shard(model, offload_policy=offload)


def place_model(model):
    return model  # the blocks move by themselves
"""
        return Snippet(
            measure="offload_parameters",
            body=body,
            wraps=("build_model",),
            sets=("place_model",),
            imports=("torch", "torch.distributed.fsdp"),
        )

    on_model(training, make)
    if training.null:
        training.update = skip_on_host


_TWINS: WeakKeyDictionary[Optimizer, Optimizer] = WeakKeyDictionary()


def skip_on_host(optimizer: Optimizer) -> None:
    """The optimizer's step over tensors without memory: on the host it takes seconds, gigabytes and nothing of the GPU.

    What it would compute there is seen all the same, where operations are recorded.
    """
    if optimizer not in _TWINS:
        _TWINS[optimizer] = _without_memory(optimizer)
    _TWINS[optimizer].step()


def _without_memory(optimizer: Optimizer) -> Optimizer:
    twin = copy.copy(optimizer)
    twin.state = defaultdict(dict)
    twin.param_groups = [
        {**group, "params": [_meta(parameter) for parameter in group["params"] if parameter.grad is not None]}
        for group in optimizer.param_groups
    ]
    return twin


def _meta(parameter: nn.Parameter) -> nn.Parameter:
    shard = getattr(parameter, "_local_tensor", parameter)
    twin = nn.Parameter(torch.empty_like(shard, device="meta"))
    twin.grad = torch.empty_like(twin)
    return twin


def require_host_memory(model: nn.Module, ranks: int = 1) -> None:
    """Raises :class:`MeasureError` where one of ``ranks`` cannot hold its parameters and gradients on this machine."""
    needed = sum(parameter.nbytes for parameter in model.parameters()) // ranks
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if 2 * needed > free:
        raise MeasureError(
            f"parameters of {format_bytes(needed)} need more host memory than this machine has free"
            f" ({format_bytes(free)})"
        )

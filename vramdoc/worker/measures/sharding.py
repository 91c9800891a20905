"""Strategies over several GPUs. The code is what a script started by torchrun holds; the worker runs it as one rank."""

from __future__ import annotations

import inspect
import os

import torch
import torch.distributed
from torch import nn
from torch.optim import Optimizer

from vramdoc.errors import MeasureError
from vramdoc.worker.measures.activations import repeated
from vramdoc.worker.measures.host_copies import skipping_host_copies
from vramdoc.worker.measures.offload import require_host_memory, skip_on_host
from vramdoc.worker.measures.precision import require_bf16
from vramdoc.worker.measures.registry import measure
from vramdoc.worker.measures.snippet import Snippet, on_model, on_optimizer, run
from vramdoc.worker.training import Training

_IMPORTS = ("os", "torch", "torch.distributed")


@measure("ddp")
def ddp(training: Training) -> None:
    """Every rank holds everything; gradients are averaged in buckets while backward goes on."""
    start(training)
    run(training, _replicated("ddp"))


@measure("zero1")
def zero1(training: Training) -> None:
    """As DDP, with each rank keeping the optimizer's state of its share of the parameters."""
    start(training)
    run(training, _replicated("zero1"))

    def make(optimizer: Optimizer) -> Snippet:
        kind = type(optimizer)
        if kind.__module__.split(".")[:2] != ["torch", "optim"]:
            raise MeasureError(f"ZeRO-1 is known for torch's optimizers, not for {kind.__module__}.{kind.__name__}")
        accepted = [name for name in inspect.signature(kind).parameters if name in optimizer.defaults]
        body = f"""
def make_optimizer(model):
    optimizer = make_optimizer_before_zero1(model)
    # The arguments that the optimizer was made with.
    defaults = {{name: optimizer.defaults[name] for name in {accepted!r}}}
    return torch.distributed.optim.ZeroRedundancyOptimizer(
        optimizer.param_groups, torch.optim.{kind.__name__}, **defaults
    )
"""
        return Snippet(
            measure="zero1",
            body=body,
            wraps=("make_optimizer",),
            imports=("torch", "torch.distributed.optim"),
        )

    on_optimizer(training, make)


@measure("zero2")
def zero2(training: Training, block: str | None = None) -> None:
    """Parameters, gradients and states in shards; a block's parameters stay whole from its forward to its backward."""
    start(training)
    _fully_shard(training, "zero2", block, {"reshard_after_forward": "False"})


@measure("zero3")
def zero3(training: Training, block: str | None = None) -> None:
    """Parameters, gradients and states in shards; a block's parameters are whole only while it runs."""
    start(training)
    _fully_shard(training, "zero3", block, {})


@measure("hsdp")
def hsdp(training: Training, block: str | None = None) -> None:
    """ZeRO-3 within each machine; the machines hold the same, and average their gradients."""
    ranks, local = world()
    if local == ranks:
        raise MeasureError("there is one machine only: this is ZeRO-3 there", hint="give --gpus-per-node")
    if local == 1:
        raise MeasureError("each machine has one GPU: this is DDP there")
    start(training)
    mesh = f"""torch.distributed.device_mesh.init_device_mesh(
        "cuda", ({ranks // local}, {local}), mesh_dim_names=("machines", "gpus")
    )"""
    _fully_shard(training, "hsdp", block, {"mesh": mesh})


@measure("fsdp_bf16")
def fsdp_bf16(training: Training) -> None:
    """fully_shard gathers and computes in bf16; shards stay as they are, gradients are reduced in fp32."""
    _require_fully_sharded(training)
    require_bf16()

    def check(model: nn.Module) -> None:
        dtypes = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
        if dtypes <= {torch.bfloat16}:
            raise MeasureError("the parameters are bfloat16 already")

    on_model(training, check)
    body = """
options_of_fully_shard["mp_policy"] = torch.distributed.fsdp.MixedPrecisionPolicy(
    param_dtype=torch.bfloat16, reduce_dtype=torch.float32
)
"""
    run(training, Snippet(measure="fsdp_bf16", body=body, imports=("torch", "torch.distributed.fsdp")))


@measure("fsdp_offload")
def fsdp_offload(training: Training) -> None:
    """Shards of parameters, gradients and optimizer state lie in host memory."""
    _require_fully_sharded(training)
    if "run_optimizer" in training.names:
        raise MeasureError("the step does not end in a plain optimizer.step()")
    ranks, local = world()
    shards = local if "mesh" in training.names["options_of_fully_shard"] else ranks

    def prepare(model: nn.Module) -> None:
        require_host_memory(model, shards)
        if training.null:
            training.place = skipping_host_copies(training.place)

    on_model(training, prepare)
    body = """
options_of_fully_shard["offload_policy"] = torch.distributed.fsdp.CPUOffloadPolicy()
"""
    run(training, Snippet(measure="fsdp_offload", body=body, imports=("torch", "torch.distributed.fsdp")))
    if training.null:
        training.update = skip_on_host


def world() -> tuple[int, int]:
    """Ranks in all and on one machine, as torchrun tells them. Raises where there is one only."""
    ranks, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if ranks < 2:
        raise MeasureError("there is one GPU only", hint="give --gpus")
    return ranks, local


def start(training: Training, *, same_batch: bool = False) -> None:
    """Refuses what cannot be sharded, and says what the batch means."""
    ranks, _ = world()
    if torch.distributed.is_initialized():
        raise MeasureError("the target sets up its process group by itself: it is distributed already")
    training.notes.append(
        f"{ranks} GPUs share a batch of {training.batch_size} samples"
        if same_batch
        else f"each of {ranks} GPUs takes {training.batch_size} samples: the effective batch is"
        f" {ranks * training.batch_size}"
    )


def require_unplaced(training: Training) -> None:
    """Raises where the model would be moved to the GPU before it has been split."""
    if "place_model" in training.names:
        raise MeasureError("the target moves its model to the GPU by itself (place_model)")


def beginning() -> str:
    """How a script starts that torchrun starts."""
    ranks, local = world()
    nodes = f"--nnodes {ranks // local} " if local < ranks else ""
    return f"""
# Start the ranks with: torchrun {nodes}--nproc-per-node {local} SCRIPT
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
torch.distributed.init_process_group("nccl")
"""


def _replicated(measure: str) -> Snippet:
    body = f"""{beginning()}

def place_model(model):
    return torch.nn.parallel.DistributedDataParallel(place_model_before_{measure}(model))
"""
    return Snippet(measure=measure, body=body, wraps=("place_model",), imports=_IMPORTS)


def _fully_shard(training: Training, measure: str, block: str | None, options: dict[str, str]) -> None:
    """``options`` of fully_shard are Python expressions. They stand in ``options_of_fully_shard``, where others add.

    The root's parameters, those outside the blocks, stay whole from forward to backward: torch's default, since
    backward begins with them.
    """
    require_unplaced(training)
    lines = [f'    "{name}": {value},' for name, value in options.items()]
    written = "\n".join(["{", *lines, "}"]) if lines else "{}"
    options_text = f"""{beginning()}
options_of_fully_shard = {written}
"""
    run(training, Snippet(measure=measure, body=options_text, imports=("os", "torch", "torch.distributed.fsdp")))

    def make(model: nn.Module) -> Snippet:
        body = f"""
def place_model(model):
    # Each call moves what it shards, so that the model is never whole on the GPU.
    for block in {repeated(model, block).code}:
        torch.distributed.fsdp.fully_shard(block, **options_of_fully_shard)
    return torch.distributed.fsdp.fully_shard(model, **options_of_fully_shard)
"""
        return Snippet(measure=measure, body=body, sets=("place_model",), imports=())

    on_model(training, make)


def _require_fully_sharded(training: Training) -> None:
    if "options_of_fully_shard" not in training.names:
        raise MeasureError("nothing is sharded by fully_shard", hint="take zero2, zero3 or hsdp with it")

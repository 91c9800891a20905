"""Measures for several GPUs: the same training, its state or its batch split over ranks.

Every rank takes the target's own batch size, so that N GPUs train on N times as many samples in a step. The two that
``needs`` names go with a strategy: they change how it shards.
"""

from __future__ import annotations

from vramdoc.advise.measures.model import BLOCK, Measure

FULLY_SHARDED = frozenset({"zero2", "zero3", "hsdp"})
"""Strategies of torch's fully_shard, which take a precision policy and an offload policy."""

_BATCH = "each GPU takes the batch of one: the effective batch grows with the number of GPUs"
_PLAIN_PARAMETERS = frozenset({"offload_parameters", "adam_8bit", "adafactor"})
"""What does not take shards (Adafactor: of torch 2.14), or shards by itself. fully_shard takes contiguous weights."""
_SHARDS = _PLAIN_PARAMETERS | {"channels_last"}
_DTENSOR_RISKS = (
    _BATCH,
    "parameters become DTensors: code that looks at their shapes or changes them has to know",
    "a checkpoint on disk is one file a rank (torch.distributed.checkpoint), or gathered first",
)

SHARDING = (
    Measure(
        name="ddp",
        title="DDP",
        tier="sharding",
        axis="sharding",
        stage=95,
        touches="the model, which every rank holds as a whole",
        applies="where parameters, gradients and optimizer state fit one GPU",
        change="wrap the model in torch.nn.parallel.DistributedDataParallel",
        cost="one all-reduce of all gradients a step, beside backward; buckets as large as the gradients",
        risks=(_BATCH, "a parameter that gets no gradient in a step ends it with an error"),
        excludes=frozenset({"offload_parameters", "optimizer_in_backward"}),
    ),
    Measure(
        name="zero1",
        title="ZeRO-1",
        tier="sharding",
        axis="sharding",
        stage=95,
        touches="the optimizer: every rank keeps the states of its share of the parameters",
        applies="optimizers that update each parameter by itself",
        change="DistributedDataParallel, and the optimizer inside torch.distributed.optim.ZeroRedundancyOptimizer",
        cost="the all-reduce of DDP, and every rank's share of the parameters broadcast after its step",
        risks=(_BATCH, "call consolidate_state_dict() before state_dict()", "ranks hold shares of unequal size"),
        excludes=_PLAIN_PARAMETERS | {"optimizer_in_backward"},
    ),
    Measure(
        name="zero2",
        title="ZeRO-2",
        tier="sharding",
        axis="sharding",
        stage=95,
        touches="parameters, gradients and optimizer state; whole parameters stay from forward to backward",
        applies="models with repeated blocks",
        change="fully_shard each block and then the model, with reshard_after_forward=False",
        cost="one all-gather of the parameters and one reduce-scatter of the gradients a step",
        risks=_DTENSOR_RISKS,
        excludes=_SHARDS,
        options=(BLOCK,),
    ),
    Measure(
        name="zero3",
        title="ZeRO-3",
        tier="sharding",
        axis="sharding",
        stage=95,
        touches="parameters, gradients and optimizer state; a block's parameters are whole while it runs",
        applies="models with repeated blocks",
        change="fully_shard each block and then the model",
        cost="two all-gathers of the parameters and one reduce-scatter of the gradients a step",
        risks=_DTENSOR_RISKS,
        excludes=_SHARDS,
        options=(BLOCK,),
    ),
    Measure(
        name="hsdp",
        title="HSDP: ZeRO-3 in each machine",
        tier="sharding",
        axis="sharding",
        stage=95,
        touches="parameters, gradients and optimizer state, sharded in each machine and the same on all",
        applies="several machines with several GPUs each, and models with repeated blocks",
        change="fully_shard each block and then the model, on a mesh of machines x GPUs",
        cost="as ZeRO-3 within a machine; between machines one all-reduce of a GPU's share of the gradients",
        risks=_DTENSOR_RISKS,
        excludes=_SHARDS,
        options=(BLOCK,),
    ),
    Measure(
        name="tensor_parallel",
        title="tensor parallel",
        tier="sharding",
        axis="sharding",
        stage=95,
        touches="linear layers, split over the ranks of a machine",
        applies="Hugging Face models with a tp_plan, and targets that define TENSOR_PARALLEL_PLAN",
        change="torch.distributed.tensor.parallel.parallelize_module with the model's plan",
        cost="an all-reduce of activations after each attention and each MLP, forward and backward, none hidden",
        risks=(
            "every rank of a machine has to be given the same batch: the effective batch does not grow",
            "heads and widths must divide by the number of ranks",
        ),
        # They mix split parameters, or activations, with whole tensors in one operation.
        excludes=_PLAIN_PARAMETERS | {"chunked_cross_entropy", "fp16_autocast", "lora", "offload_activations"},
    ),
    Measure(
        name="fsdp_bf16",
        title="bf16 mixed precision in fully_shard",
        tier="numerics",
        axis="precision",
        stage=96,
        touches="what is gathered and computed with; shards and reductions stay fp32",
        applies="sharded models in fp32, on GPUs with bf16 (compute capability 8.0 and above)",
        change="pass MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) to fully_shard",
        cost="faster: tensor cores, and half the bytes to gather",
        risks=("the whole of a block runs in bf16, also what autocast would keep in fp32 (norms, softmax)",),
        needs=FULLY_SHARDED,
    ),
    Measure(
        name="fsdp_offload",
        title="shards on the host",
        tier="speed",
        axis="offload",
        stage=96,
        touches="shards of parameters, gradients and optimizer state",
        applies="sharded models",
        change="pass CPUOffloadPolicy() to fully_shard",
        cost="each shard crosses the host link twice a step, each gradient once, and the optimizer runs on the host",
        risks=("every rank of a machine needs host memory for its shards of parameters, gradients and states",),
        excludes=frozenset({"fused_optimizer", "optimizer_in_backward", "fp16_autocast"}),
        needs=FULLY_SHARDED,
    ),
)

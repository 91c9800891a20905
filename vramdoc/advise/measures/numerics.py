"""Measures of the tier ``numerics``: the same training with other rounding."""

from __future__ import annotations

from vramdoc.advise.measures.model import Measure

NUMERICS = (
    Measure(
        name="bf16_parameters",
        title="parameters in bf16",
        tier="numerics",
        axis="precision",
        stage=20,
        touches="parameters, gradients, optimizer state and activations",
        applies="models in fp32, on GPUs with bf16 (compute capability 8.0 and above)",
        change="model.to(torch.bfloat16), and float inputs too",
        cost="faster: tensor cores, half the bytes",
        risks=(
            "an update smaller than 1/256 of a weight is lost: small learning rates stall without stochastic rounding",
        ),
    ),
    Measure(
        name="bf16_autocast",
        title="bf16 autocast",
        tier="numerics",
        axis="precision",
        stage=55,
        touches="the forward",
        applies="steps in fp32, on GPUs with bf16 (compute capability 8.0 and above)",
        change="run forward and loss inside torch.autocast('cuda', dtype=torch.bfloat16)",
        cost="faster on tensor cores; casts of weights are kept until backward",
        risks=("may use more memory where weights outweigh activations",),
    ),
    Measure(
        name="fp16_autocast",
        title="fp16 autocast with a gradient scaler",
        tier="numerics",
        axis="precision",
        stage=55,
        touches="the forward, backward and the optimizer's step",
        applies="steps in fp32",
        change="run forward and loss inside torch.autocast('cuda', dtype=torch.float16), with torch.amp.GradScaler",
        cost="faster on tensor cores; one read of the device a step to see whether gradients overflowed",
        risks=(
            "gradients that overflow skip the step until the scale has come down",
            "clip gradients only after scaler.unscale_(optimizer)",
        ),
    ),
    Measure(
        name="adam_8bit",
        title="8-bit Adam",
        tier="numerics",
        axis="optimizer",
        stage=80,
        touches="the optimizer's state",
        applies="Adam and AdamW",
        change="use bitsandbytes.optim.AdamW8bit or torchao.optim.AdamW8bit",
        cost="about as fast",
        risks=("small tensors keep 32-bit state", "state files of the old optimizer cannot be loaded"),
        excludes=frozenset({"fused_optimizer", "no_foreach", "optimizer_in_backward"}),
        packages=("bitsandbytes", "torchao"),
    ),
)

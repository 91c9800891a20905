"""Runs one published RTX A6000 case on whatever GPU the process has. test_a6000.py imports it there.

The order of allocations is that of the measurement: build on the host, move, then adapters, ids, steps.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
LAYERS_WITH_ADAPTERS = ["q_proj", "k_proj", "v_proj", "o_proj"]


def build(config: dict[str, Any], run: dict[str, Any]) -> nn.Module:
    """The model on the GPU. Its weights keep what the host's memory held: no value matters here."""
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.modeling_utils import no_init_weights

    description = AutoConfig.for_model(**config)
    with no_init_weights():
        model = AutoModelForCausalLM.from_config(
            description, dtype=DTYPES[run["weights_dtype"]], attn_implementation=run["attention"]
        )
    model.tie_weights()  # transformers leaves this out together with the initialisation
    model = model.cuda()
    if run["lora_rank"]:
        from peft import LoraConfig, get_peft_model

        rank = run["lora_rank"]
        model = get_peft_model(
            model,
            LoraConfig(r=rank, lora_alpha=rank, lora_dropout=0.0, target_modules=LAYERS_WITH_ADAPTERS),
        )
    return model


@contextlib.contextmanager
def attention_kernels(run: dict[str, Any]) -> Iterator[None]:
    if run["attention"] != "sdpa":
        yield
        return
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION]):
        yield


def reset_peak() -> None:
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def infer(model: nn.Module, ids: Tensor, run: dict[str, Any], weights: int) -> dict[str, int]:
    model.eval()
    reset_peak()
    with torch.inference_mode(), attention_kernels(run):
        output = model(input_ids=ids, use_cache=True)
    peak = torch.cuda.max_memory_allocated() - weights
    del output
    return {"states": 0, "peak": peak}


def train(model: nn.Module, ids: Tensor, run: dict[str, Any], weights: int) -> dict[str, int]:
    model.train()
    model.config.use_cache = False
    if run["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trainable, foreach=True)
    autocast = run["autocast"]

    def step() -> None:
        with attention_kernels(run):
            with torch.autocast("cuda", dtype=DTYPES[autocast or "bf16"], enabled=autocast is not None):
                output = model(input_ids=ids, labels=ids)
            loss = output.loss
            loss.backward()
        del output, loss
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    step()
    states = torch.cuda.memory_allocated() - weights
    peaks = []
    for _ in range(3):
        reset_peak()
        step()
        peaks.append(torch.cuda.max_memory_allocated())
    return {"states": states, "peak": max(peaks) - (weights + states)}


def measure(config: dict[str, Any], run: dict[str, Any]) -> dict[str, int]:
    """The figures of the published run, in bytes."""
    model = build(config, run)
    weights = torch.cuda.memory_allocated()
    ids = torch.randint(0, config["vocab_size"], (run["batch"], run["seq_len"]), device="cuda")
    found = (infer if run["mode"] == "inference" else train)(model, ids, run, weights)
    return {"weights": weights, **found, "total": weights + found["states"] + found["peak"]}

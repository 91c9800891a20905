"""The changes written by hand into a plain training loop: nothing of vramdoc is used. Prints peaks as JSON.

Each variant runs in a forked child, since cached workspaces would change the next number.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch.distributed.fsdp
import torch.utils.checkpoint
import transformers
from targets import autoencoder, causal, convnet, heavy, multihead, tied, transformer
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

aten = torch.ops.aten
KEPT = [
    aten.mm.default,
    aten.addmm.default,
    aten.convolution.default,
    aten._scaled_dot_product_efficient_attention.default,
    aten._scaled_dot_product_flash_attention.default,
]


def run(
    module: Any,
    *,
    change=lambda model: model,
    batch=lambda value: value,
    loss=None,
    optimizer=None,
    size=None,
    parts=1,
    scaler=False,
    in_backward=None,
    saved=False,
    autocast=None,
    place=lambda model: model.cuda(),
    set_to_none=True,
):
    """A plain loop with the change that the arguments ask for; its allocated and reserved peak."""
    torch.manual_seed(0)
    model = place(change(module.build_model()))
    make = optimizer or getattr(module, "make_optimizer", lambda model: torch.optim.AdamW(model.parameters()))
    if in_backward:
        singles = {parameter: in_backward([parameter]) for parameter in model.parameters()}

        def step_now(parameter):
            singles[parameter].step()
            singles[parameter].zero_grad()

        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(step_now)
    else:
        optimizer = make(model)
    grad_scaler = torch.amp.GradScaler("cuda") if scaler else None
    compute_loss = loss or getattr(module, "compute_loss", None) or default_loss
    for _ in range(4):
        data = batch(module.make_batch(size or module.BATCH_SIZE))
        for part in pieces(data, parts):
            inputs = torch.utils._pytree.tree_map(lambda value: value.cuda(), part)
            with torch.autocast("cuda", dtype=autocast or torch.float16, enabled=autocast is not None):
                if saved:
                    with torch.autograd.graph.save_on_cpu(pin_memory=True):
                        value = compute_loss(model, inputs)
                else:
                    value = compute_loss(model, inputs)
            scaled = grad_scaler.scale(value) if grad_scaler else value / parts if parts > 1 else value
            scaled.backward()
            del scaled
        if grad_scaler:
            grad_scaler.step(optimizer)
            grad_scaler.update()
        elif not in_backward:
            optimizer.step()
        if not in_backward:
            optimizer.zero_grad(set_to_none=set_to_none)
        del data, part, inputs, value  # a step ends with what it began with
    return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def default_loss(model, batch):
    output = model(**batch) if isinstance(batch, dict) else model(batch)
    return output.loss if isinstance(batch, dict) else output.sum()


def pieces(data, parts):
    if parts == 1:
        return [data]
    if isinstance(data, torch.Tensor):
        return data.chunk(parts)
    return list(zip(*(value.chunk(parts) for value in data), strict=True))


def checkpointed(model, count=None, **options):
    blocks = list(model.model.layers if hasattr(model, "model") else getattr(model, "blocks", model))
    if hasattr(model, "config"):
        model.config.use_cache = False
    for block in blocks[:count]:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False, **options)
    return model


selective = functools.partial(checkpointed, context_fn=functools.partial(create_selective_checkpoint_contexts, KEPT))


def frozen(model):
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.startswith(("blocks.3.", "head.", "wide."))
    return model


def channels_last(model):
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d | torch.nn.ConvTranspose2d):
            module.weight.data = module.weight.data.contiguous(memory_format=torch.channels_last)
    return model


def without_weights(model):
    for block in model:
        attention = block.attention
        block.forward = functools.partial(
            lambda block, attention, x: (lambda y: y + block.mlp(y))(x + attention(x, x, x, need_weights=False)[0]),
            block,
            attention,
        )
    return model


def adapters(model):
    import peft

    names = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and "layers" in name]
    names += [name for name, module in model.named_modules() if type(module) is torch.nn.Linear and "blocks" in name]
    return peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16, target_modules=names))


def chunked_loss(model, batch):
    decoder = model.transformer if hasattr(model, "transformer") else model.model
    hidden = decoder(input_ids=batch["input_ids"]).last_hidden_state
    return torch.nn.functional.linear_cross_entropy(
        hidden[:, :-1].flatten(0, 1), model.lm_head.weight, batch["labels"][:, 1:].flatten(),
        options=torch.nn.LinearCrossEntropyOptions(),
    )  # fmt: skip


def sdpa(_model):
    config = causal.build_model().config
    config._attn_implementation = "sdpa"
    return transformers.LlamaForCausalLM(config)


def offloaded(model):
    torch.distributed.init_process_group("nccl", rank=0, world_size=1, store=torch.distributed.HashStore())
    for module in [*model.blocks, model]:
        torch.distributed.fsdp.fully_shard(module, offload_policy=torch.distributed.fsdp.CPUOffloadPolicy())
    return model


def expandable():
    torch._C._accelerator_setAllocatorSettings("expandable_segments:True")


def images_last(batch):
    return batch[0].contiguous(memory_format=torch.channels_last), batch[1]


def half_batch(batch):
    return batch[0].bfloat16(), batch[1]


AdamW, Adam, SGD, Adafactor = torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD, torch.optim.Adafactor
bf16 = torch.bfloat16
KEPT_AS_ZEROS = {"set_to_none": False}
PLAIN: dict[str, dict[str, Any]] = {
    "transformer": {}, "convnet": KEPT_AS_ZEROS, "autoencoder": KEPT_AS_ZEROS, "multihead": {}, "causal": {},
    "tied": {}, "heavy": {},
}  # fmt: skip
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "transformer": {
        "expandable_segments": {"first": expandable},
        "smaller_batch": {"size": 4},
        "shorter_sequence": {"batch": lambda ids: ids[:, :128]},
        "bf16_parameters": {"change": lambda model: model.bfloat16()},
        "freeze": {"change": frozen},
        "lora": {"change": adapters},
        "checkpoint": {"change": checkpointed},
        "checkpoint 2": {"change": functools.partial(checkpointed, count=2)},
        "selective_checkpoint": {"change": selective},
        "offload_activations": {"saved": True},
        "offload_parameters": {"change": offloaded, "place": lambda model: model},
        "bf16_autocast": {"autocast": bf16},
        "fp16_autocast": {"autocast": torch.float16, "scaler": True},
        "micro_batch": {"parts": 2},
        "adafactor": {"optimizer": lambda model: Adafactor(model.parameters())},
        "sgd_momentum": {"optimizer": lambda model: SGD(model.parameters(), lr=0.1, momentum=0.9)},
        "fused_optimizer": {"optimizer": lambda model: AdamW(model.parameters(), fused=True)},
        "no_foreach": {"optimizer": lambda model: AdamW(model.parameters(), foreach=False)},
        "optimizer_in_backward": {"in_backward": AdamW},
    },
    "convnet": {
        "expandable_segments": {"first": expandable},
        "smaller_batch": {"size": 8},
        "bf16_parameters": {"change": lambda model: model.bfloat16(), "batch": half_batch},
        "freeze": {"change": frozen},
        "channels_last": {"change": channels_last, "batch": images_last},
        "checkpoint": {"change": checkpointed},
        "selective_checkpoint": {"change": selective},
        "offload_activations": {"saved": True},
        "offload_parameters": {"change": offloaded, "place": lambda model: model},
        "bf16_autocast": {"autocast": bf16},
        "fp16_autocast": {"autocast": torch.float16, "scaler": True},
        "micro_batch": {"parts": 2},
        "adafactor": {"optimizer": lambda model: Adafactor(model.parameters())},
        "sgd_momentum": {"optimizer": lambda model: SGD(model.parameters(), lr=0.1, momentum=0.9)},
        "fused_optimizer": {"optimizer": lambda model: Adam(model.parameters(), fused=True)},
        "no_foreach": {"optimizer": lambda model: Adam(model.parameters(), foreach=False)},
        "optimizer_in_backward": {"in_backward": Adam},
        "zero_grad_to_none": {"set_to_none": True},
    },
    "multihead": {
        "sdpa": {"change": without_weights},
        "checkpoint": {"change": checkpointed},
    },
    "causal": {
        "sdpa": {"change": sdpa},
        "chunked_cross_entropy": {"loss": chunked_loss},
        "lora": {"change": adapters},
        "checkpoint": {"change": checkpointed},
    },
    "tied": {
        "chunked_cross_entropy": {"loss": chunked_loss},
        "shorter_sequence": {"batch": lambda batch: {name: ids[:, :96] for name, ids in batch.items()}},
    },
    "autoencoder": {
        "channels_last": {
            "change": channels_last,
            "batch": lambda images: images.contiguous(memory_format=torch.channels_last),
        },
        "zero_grad_to_none": {"set_to_none": True},
    },
    "heavy": {"bf16_autocast": {"autocast": bf16}},
}
MODULES = {
    "transformer": transformer, "convnet": convnet, "autoencoder": autoencoder, "multihead": multihead,
    "causal": causal, "tied": tied, "heavy": heavy,
}  # fmt: skip


def in_child(target: str, options: dict[str, Any]) -> list[int]:
    """What ``run`` returns in a process of its own."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        first = options.pop("first", None)
        if first:
            first()
        os.write(write, json.dumps(run(MODULES[target], **options)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        answer = stream.read()
    os.wait()
    peaks: list[int] = json.loads(answer)
    return peaks


if __name__ == "__main__":
    found = {
        target: {
            "plain": in_child(target, dict(PLAIN[target])),
            **{name: in_child(target, {**PLAIN[target], **options}) for name, options in variants.items()},
        }
        for target, variants in VARIANTS.items()
    }
    Path(sys.argv[1]).write_text(json.dumps(found))

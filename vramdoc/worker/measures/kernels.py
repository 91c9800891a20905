"""Measures of the tier ``free`` that pick another kernel, layout or allocator behaviour."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from vramdoc.errors import MeasureError
from vramdoc.worker.measures.registry import measure
from vramdoc.worker.measures.snippet import Snippet, on_model, run
from vramdoc.worker.training import Training


@measure("expandable_segments")
def expandable_segments(training: Training) -> None:
    """The allocator grows segments instead of taking new ones: less is reserved in pieces that fit nothing."""
    newer = hasattr(torch._C, "_accelerator_setAllocatorSettings")  # since 2.10; the other one warns there
    setter = "torch._C._accelerator_setAllocatorSettings" if newer else "torch.cuda.memory._set_allocator_settings"
    body = f"""
# The same as PYTORCH_ALLOC_CONF=expandable_segments:True in the environment of the program.
{setter}("expandable_segments:True")
"""
    run(training, Snippet(measure="expandable_segments", body=body))


@measure("channels_last")
def channels_last(training: Training) -> None:
    """Images and convolution weights with their channels innermost."""
    body = """
def build_model():
    return build_model_before_channels_last().to(memory_format=torch.channels_last)


def make_batch(batch_size):
    return torch.utils._pytree.tree_map(
        lambda value: (
            value.to(memory_format=torch.channels_last)
            if isinstance(value, torch.Tensor) and value.dim() == 4
            else value
        ),
        make_batch_before_channels_last(batch_size),
    )
"""

    def make(model: nn.Module) -> Snippet:
        convolutions = [module for module in model.modules() if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d))]
        if not convolutions:
            raise MeasureError("the model has no two-dimensional convolution")
        # A weight of one channel, or of one pixel, has both layouts at once.
        weights = [module.weight for module in convolutions if not _has_both_layouts(module.weight)]
        if weights and all(weight.is_contiguous(memory_format=torch.channels_last) for weight in weights):
            raise MeasureError("the convolutions are channels-last already")
        return Snippet(measure="channels_last", body=body, wraps=("build_model", "make_batch"))

    on_model(training, make)


def _has_both_layouts(weight: torch.Tensor) -> bool:
    return weight.is_contiguous() and weight.is_contiguous(memory_format=torch.channels_last)


@measure("sdpa")
def sdpa(training: Training) -> None:
    """Attention that does not keep its scores: one value for every pair of tokens, in every head."""

    def make(model: nn.Module) -> Snippet | None:
        config = getattr(model, "config", None)
        implementation = getattr(config, "_attn_implementation", None)
        if implementation == "eager":
            if not getattr(model, "_supports_sdpa", False):
                raise MeasureError(f"{type(model).__name__} has no SDPA implementation")
            return Snippet(measure="sdpa", body=_HUGGING_FACE_SDPA, wraps=("build_model",))
        multihead = [module for module in model.modules() if isinstance(module, nn.MultiheadAttention)]
        if not multihead:
            if implementation:
                raise MeasureError(f"attention is {implementation} already")
            raise MeasureError(
                "the model has no attention layer that is known (Hugging Face's or nn.MultiheadAttention)"
            )
        _refuse_if_unused(multihead)
        return Snippet(measure="sdpa", body=_WITHOUT_WEIGHTS, wraps=("build_model",))

    on_model(training, make)


_HUGGING_FACE_SDPA = """
def build_model():
    model = build_model_before_sdpa()
    model.set_attn_implementation("sdpa")  # the same as attn_implementation="sdpa" where the model is made
    return model
"""
_WITHOUT_WEIGHTS = """
def build_model():
    model = build_model_before_sdpa()

    def without_weights(forward):
        return lambda *inputs, **options: forward(*inputs, **{**options, "need_weights": False})

    for module in model.modules():
        if isinstance(module, torch.nn.MultiheadAttention):
            module.forward = without_weights(module.forward)
    return model
"""


def _refuse_if_unused(modules: list[nn.MultiheadAttention]) -> None:
    """Raises, in the first step, where no layer was asked for its weights: then SDPA is at work already."""
    asked: list[bool] = []

    def seen(_module: nn.Module, _inputs: Any, options: dict[str, Any]) -> None:
        asked.append(options.get("need_weights", True))
        if len(asked) == len(modules) and not any(asked):
            raise MeasureError("no attention layer returns its weights: SDPA is at work already")

    for module in modules:
        module.register_forward_pre_hook(seen, with_kwargs=True)


@measure("ddp_bucket_view")
def ddp_bucket_view(training: Training) -> None:
    """DDP's gradients lie in its buckets instead of beside them."""
    if not torch.distributed.is_initialized():
        raise MeasureError("the model is not wrapped in DistributedDataParallel: there is one process only")
    body = """
def bucket_views(construct):
    return lambda *inputs, **options: construct(*inputs, **{**options, "gradient_as_bucket_view": True})


# The same as gradient_as_bucket_view=True where DistributedDataParallel is made.
torch.nn.parallel.DistributedDataParallel.__init__ = bucket_views(
    torch.nn.parallel.DistributedDataParallel.__init__
)
"""
    run(training, Snippet(measure="ddp_bucket_view", body=body))

"""Chunked linear cross-entropy: torch's own where it has one, else Liger's. A measure of the tier ``free``."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal

import torch
from torch import nn

from vramdoc.errors import MeasureError
from vramdoc.worker.blocks import path
from vramdoc.worker.measures.registry import measure
from vramdoc.worker.measures.snippet import Snippet, on_model
from vramdoc.worker.training import Training


def provider() -> Literal["torch", "liger"]:
    """Whose function it is. Raises :class:`MeasureError` where neither has one."""
    if hasattr(nn, "LinearCrossEntropyOptions"):
        return "torch"
    if importlib.util.find_spec("liger_kernel") is not None:
        return "liger"
    raise MeasureError(
        f"torch {torch.__version__} has no chunked linear cross-entropy (it came with 2.14), and the package"
        " liger_kernel, which has one, is not installed",
        hint="pip install liger-kernel, or install torch 2.14 or newer",
    )


@measure("chunked_cross_entropy")
def chunked_cross_entropy(training: Training) -> None:
    """Head and loss a few tokens at a time: the logits, tokens x vocabulary, never exist as a whole."""
    chosen = provider()

    def make(model: nn.Module) -> Snippet:
        loss = _LOSS[chosen].format(weight=f"{path(_output_head(model))}.weight").strip()
        model.register_forward_pre_hook(_refuse_without_labels, with_kwargs=True)
        body = f"""
def build_model():
    model = build_model_before_chunked_cross_entropy()

    def forward(*inputs, labels, num_items_in_batch=None, **options):
        hidden = model.base_model(*inputs, **options)[0]
        {loss}
        return transformers.modeling_outputs.CausalLMOutput(loss=loss)

    model.forward = forward
    return model
"""
        return Snippet(
            measure="chunked_cross_entropy",
            body=body,
            wraps=("build_model",),
            imports=(*_IMPORTS[chosen], "transformers.modeling_outputs"),
        )

    on_model(training, make)


_LOSS = {
    "torch": """
        loss = torch.nn.functional.linear_cross_entropy(
            hidden[:, :-1].flatten(0, 1),
            {weight},
            labels[:, 1:].flatten(),
            options=torch.nn.LinearCrossEntropyOptions(),
        )
""",
    "liger": """
        loss = liger_kernel.transformers.LigerFusedLinearCrossEntropyLoss()(
            {weight},
            hidden[:, :-1].flatten(0, 1),
            labels[:, 1:].flatten(),
        )
""",
}
_IMPORTS = {"torch": ("torch",), "liger": ("torch", "liger_kernel.transformers")}


def _refuse_without_labels(_model: nn.Module, _inputs: Any, options: dict[str, Any]) -> None:
    if options.get("labels") is None:
        raise MeasureError("the model is called without labels: the loss is computed from its logits")


def _output_head(model: nn.Module) -> str:
    """The name of the linear layer that a Hugging Face causal model ends in, if its loss is cross-entropy of that."""
    name = type(model).__name__
    if getattr(model, "loss_type", None) != "ForCausalLM" and not name.endswith("LMHeadModel"):
        raise MeasureError(
            "not a Hugging Face causal model",
            hint="in a model of your own, replace head and cross_entropy by torch.nn.functional.linear_cross_entropy",
        )
    config: Any = model.config
    changed = [key for key in _CHANGES_LOGITS if getattr(config, key, None) not in (None, False, 1.0)]
    if changed:
        raise MeasureError(f"{name} does more to its logits than cross-entropy ({', '.join(changed)})")
    head = getattr(model, "get_output_embeddings", lambda: None)()
    found = next((key for key, module in model.named_modules() if module is head), "")
    if not isinstance(head, nn.Linear) or head.bias is not None or not found:
        raise MeasureError(f"{name} has no plain linear output head")
    return found


_CHANGES_LOGITS = (
    "final_logit_softcapping",
    "logit_scale",
    "logits_scaling",
    "output_router_logits",
    "lm_head_multiplier",
)

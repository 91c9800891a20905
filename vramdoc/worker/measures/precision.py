"""Measures of precision: autocast, and parameters of fewer bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from vramdoc.errors import MeasureError
from vramdoc.worker.measures.registry import measure
from vramdoc.worker.measures.snippet import Snippet, on_model, require_plain_update, run
from vramdoc.worker.training import Training

_FIRST_WITH_BF16 = (8, 0)
"""Compute capability of the first GPUs whose tensor cores take bf16 (CUDA C++ Programming Guide, arithmetic
instructions)."""


@measure("bf16_autocast")
def bf16_autocast(training: Training) -> None:
    """Matrix products and convolutions in bf16, over fp32 weights."""
    require_bf16()
    _autocast(training, "bf16_autocast", torch.bfloat16)


@measure("fp16_autocast")
def fp16_autocast(training: Training) -> None:
    """Matrix products and convolutions in fp16, over fp32 weights, with a scaler that keeps gradients in range."""
    require_plain_update(training)
    _autocast(training, "fp16_autocast", torch.float16)
    body = """
scaler_of_fp16_autocast = torch.amp.GradScaler("cuda")


def run_backward(loss):
    run_backward_before_fp16_autocast(scaler_of_fp16_autocast.scale(loss))


def run_optimizer(optimizer):
    scaler_of_fp16_autocast.step(optimizer)
    scaler_of_fp16_autocast.update()
"""
    run(
        training,
        Snippet(measure="fp16_autocast", body=body, wraps=("run_backward",), sets=("run_optimizer",), imports=()),
    )


def _autocast(training: Training, name: str, dtype: torch.dtype) -> None:
    on_model(training, _refuse_low_precision)
    if "compute_loss" in training.names:
        training.compute_loss = _refusing_autocast(training.compute_loss)
        body = f"""
def compute_loss(model, batch):
    with torch.autocast("cuda", dtype={dtype}):
        return compute_loss_before_{name}(model, batch)
"""
        run(training, Snippet(measure=name, body=body, wraps=("compute_loss",)))
        return
    body = f"""
def build_model():
    model = build_model_before_{name}()
    model.forward = torch.autocast("cuda", dtype={dtype})(model.forward)
    return model
"""
    run(training, Snippet(measure=name, body=body, wraps=("build_model",)))


def _refuse_low_precision(model: nn.Module) -> None:
    dtypes = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    if dtypes and dtypes <= {torch.bfloat16, torch.float16}:
        found = " and ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
        raise MeasureError(f"the parameters are {found} already: autocast would cast nothing that is large")


def _refusing_autocast(compute_loss: Callable[[nn.Module, Any], Tensor]) -> Callable[..., Tensor]:
    """``compute_loss`` that raises, in the first step, where it switches autocast on by itself."""
    first = [True]

    def computed(model: nn.Module, batch: Any) -> Tensor:
        if not first:
            return compute_loss(model, batch)
        first.clear()
        with _autocast_forbidden():
            return compute_loss(model, batch)

    return computed


@contextmanager
def _autocast_forbidden() -> Iterator[None]:
    enter = torch.autocast.__enter__

    def refuse(self: torch.autocast) -> Any:
        if self._enabled and self.device == "cuda":
            raise MeasureError(f"the step runs under autocast ({str(self.fast_dtype).removeprefix('torch.')}) already")
        return enter(self)

    torch.autocast.__enter__ = refuse  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.autocast.__enter__ = enter  # type: ignore[method-assign]


@measure("bf16_parameters")
def bf16_parameters(training: Training) -> None:
    """Parameters, and with them gradients, optimizer state and activations, in bf16."""
    require_bf16()

    def make(model: nn.Module) -> Snippet:
        dtypes = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
        if dtypes and dtypes <= {torch.bfloat16}:
            raise MeasureError("the parameters are bfloat16 already")
        body = """
def build_model():
    return build_model_before_bf16_parameters().to(torch.bfloat16)


def make_batch(batch_size):
    return torch.utils._pytree.tree_map(
        lambda value: (
            value.to(torch.bfloat16) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        ),
        make_batch_before_bf16_parameters(batch_size),
    )
"""
        return Snippet(measure="bf16_parameters", body=body, wraps=("build_model", "make_batch"))

    on_model(training, make)


def require_bf16() -> None:
    """Raises :class:`MeasureError` where the GPU has no bf16."""
    capability = torch.cuda.get_device_capability()
    if capability < _FIRST_WITH_BF16:
        raise MeasureError(
            f"{torch.cuda.get_device_name()} has no bf16 (compute capability {'.'.join(map(str, capability))})",
            hint="take fp16_autocast",
        )

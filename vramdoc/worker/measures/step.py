"""Measures that change the step: micro-batches, batch size and sequence length."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vramdoc.errors import MeasureError
from vramdoc.worker.measures.registry import measure
from vramdoc.worker.measures.snippet import Snippet, on_batch, on_model, run
from vramdoc.worker.training import Training


@measure("micro_batch")
def micro_batch(training: Training, parts: int = 2) -> None:
    """The batch in ``parts``, each with a forward and a backward that adds to the gradients."""
    if training.micro_batches > 1:
        raise MeasureError(f"the step runs in {training.micro_batches} micro-batches already")
    if training.batch_size < parts:
        raise MeasureError(f"a batch of {training.batch_size} cannot be split in {parts}")
    body = f"""
MICRO_BATCHES = {parts}  # the step's loop: for part in batch in {parts} pieces, run_backward(compute_loss(model, part))


def run_backward(loss):
    run_backward_before_micro_batch(loss / MICRO_BATCHES)
"""
    run(training, Snippet(measure="micro_batch", body=body, wraps=("run_backward",), sets=("MICRO_BATCHES",)))
    training.notes.append(_MEAN_OF_MEANS)
    if training.batch_size % parts:
        training.notes.append(f"{training.batch_size} samples in {parts} micro-batches are parts of unequal size")

    def note(model: nn.Module) -> None:
        if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules()):
            training.notes.append("batch norm sees the statistics of each micro-batch, not of the whole batch")

    on_model(training, note)
    _require_splittable(training)


_MEAN_OF_MEANS = (
    "micro-batches: the loss is taken for a mean over samples; a mean over tokens that are not equally many in each"
    " part, or a sum, has to be weighted"
)


def _require_splittable(training: Training) -> None:
    """Raises, once there is a batch, where it has nothing that can be split."""
    make_batch = training.make_batch

    def made(batch_size: int) -> Any:
        batch = make_batch(batch_size)
        tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(batch) if isinstance(leaf, Tensor) and leaf.dim()]
        if not tensors:
            raise MeasureError("the batch has no tensors that could be split")
        if any(len(tensor) != batch_size for tensor in tensors):
            raise MeasureError(f"not every tensor of the batch has {batch_size} samples as its first dimension")
        return batch

    training.make_batch = made


@measure("smaller_batch")
def smaller_batch(training: Training, divide: int = 2) -> None:
    """A batch of ``1 / divide`` of the samples."""
    if training.batch_size < divide:
        raise MeasureError(f"a batch of {training.batch_size} cannot be divided by {divide}")
    body = f"\nBATCH_SIZE = {training.batch_size // divide}\n"
    run(training, Snippet(measure="smaller_batch", body=body, sets=("BATCH_SIZE",), imports=()))


@measure("shorter_sequence")
def shorter_sequence(training: Training, divide: int = 2) -> None:
    """Token tensors cut to ``1 / divide`` of their length."""

    def make(batch: Any, batch_size: int) -> Snippet:
        lengths = {
            leaf.shape[1]
            for leaf in torch.utils._pytree.tree_leaves(batch)
            if isinstance(leaf, Tensor) and _is_tokens(leaf, batch_size)
        }
        if not lengths:
            raise MeasureError("the batch has no integer tensors of shape [batch, tokens]")
        tokens = max(lengths) // divide
        if tokens < 2:
            raise MeasureError(f"sequences of {max(lengths)} tokens cannot be divided by {divide}")
        body = f"""
def make_batch(batch_size):
    return torch.utils._pytree.tree_map(
        lambda value: (
            value[:, :{tokens}]
            if isinstance(value, torch.Tensor) and value.dim() == 2 and not value.is_floating_point()
            else value
        ),
        make_batch_before_shorter_sequence(batch_size),
    )
"""
        return Snippet(measure="shorter_sequence", body=body, wraps=("make_batch",))

    on_batch(training, make)


def _is_tokens(tensor: Tensor, batch_size: int) -> bool:
    return (
        tensor.dim() == 2 and len(tensor) == batch_size and not tensor.is_floating_point() and not tensor.is_complex()
    )

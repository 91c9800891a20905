"""Measures applied to a live training loop: each is one function that changes a ``Training``."""

from vramdoc.worker.measures import (
    activations,
    chunked_loss,
    kernels,
    offload,
    optimizers,
    precision,
    sharding,
    step,
    tensor_parallel,
    trainable,
)
from vramdoc.worker.measures.registry import apply, measure

__all__ = [
    "activations",
    "apply",
    "chunked_loss",
    "kernels",
    "measure",
    "offload",
    "optimizers",
    "precision",
    "sharding",
    "step",
    "tensor_parallel",
    "trainable",
]

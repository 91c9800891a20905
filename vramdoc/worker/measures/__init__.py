"""Measures applied to a live training loop: each is one function that changes a ``Training``."""

from vramdoc.worker.measures import (
    activations,
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

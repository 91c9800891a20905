"""What a null GPU is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """One device, as torch will see it. Sizes in bytes."""

    name: str  # as CUDA reports it: "NVIDIA H100 80GB HBM3"
    compute_capability: tuple[int, int]
    multiprocessors: int
    total_bytes: int  # as CUDA reports it
    context_bytes: int  # what the CUDA context takes before the first allocation
    shared_memory_per_block: int  # the opt-in maximum
    shared_memory_per_multiprocessor: int
    l2_bytes: int

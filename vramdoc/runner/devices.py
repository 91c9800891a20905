"""From a GPU of the tables to the devices of a null-GPU process."""

from __future__ import annotations

from vramdoc.hardware import Gpu, context_or_estimate
from vramdoc.nullgpu import DeviceSpec


def device_specs(gpu: Gpu, count: int = 1) -> tuple[DeviceSpec, ...]:
    """``count`` null devices that report what ``gpu`` reports; an unknown context
    size is the estimate of :func:`vramdoc.hardware.context_or_estimate`, an unknown L2 size 0.
    """
    context_bytes, _measured = context_or_estimate(gpu)
    spec = DeviceSpec(
        name=gpu.name,
        compute_capability=gpu.compute_capability,
        multiprocessors=gpu.multiprocessors,
        total_bytes=gpu.total_bytes,
        context_bytes=context_bytes,
        shared_memory_per_block=gpu.shared_memory_per_block,
        shared_memory_per_multiprocessor=gpu.shared_memory_per_multiprocessor,
        l2_bytes=gpu.l2_bytes or 0,
    )
    return (spec,) * count

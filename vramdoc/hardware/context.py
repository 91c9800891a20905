"""What a CUDA context takes beside the allocator, for GPUs on which nobody has measured it."""

from __future__ import annotations

from vramdoc.hardware.model import Gpu

ESTIMATED_CONTEXT_BYTES = 744_685_568
"""The context of a training step on an RTX A6000 with torch 2.14.1+cu130, taken for every GPU without its own.

Most of it is code that torch, cuBLAS and cuDNN load, of about the same size on every GPU; the part that grows
with the number of multiprocessors is smaller. Public reports lie between 250 MiB (an idle process, nothing
loaded yet) and 1 GiB (CUDA before 11.7, everything loaded at once). So it is right to some 300 MiB.
"""


def context_or_estimate(gpu: Gpu) -> tuple[int, bool]:
    """Bytes outside the allocator once a training step has run, and whether that was measured on ``gpu``."""
    if gpu.context_bytes is not None:
        return gpu.context_bytes, True
    return ESTIMATED_CONTEXT_BYTES, False

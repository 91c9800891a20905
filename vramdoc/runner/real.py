"""The machine's own GPUs, asked without starting CUDA."""

from __future__ import annotations


def gpu_count() -> int:
    """How many GPUs the driver lists; 0 where there is no driver."""
    import pynvml  # here, since most commands never ask

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        count: int = pynvml.nvmlDeviceGetCount()
        return count
    finally:
        pynvml.nvmlShutdown()

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


def gpu_name() -> str:
    """What the driver calls the first GPU; "" where there is none."""
    import pynvml

    if not gpu_count():
        return ""
    pynvml.nvmlInit()
    try:
        name: str = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))
        return name
    finally:
        pynvml.nvmlShutdown()

"""The null GPU: NVIDIA's libraries, stood in for, on a GPU that does not exist."""

from vramdoc.nullgpu.spec import DeviceSpec

__all__ = ["DeviceSpec"]

"""The null GPU: NVIDIA's libraries, stood in for, on a GPU that does not exist."""

from __future__ import annotations

from vramdoc.nullgpu.engine import Counters, apply, configuration, configure, counters
from vramdoc.nullgpu.installed_torch import TorchBuild, torch_build
from vramdoc.nullgpu.preload import environment, unsupported_reason
from vramdoc.nullgpu.spec import DeviceSpec

__all__ = [
    "Counters",
    "DeviceSpec",
    "TorchBuild",
    "apply",
    "configuration",
    "configure",
    "counters",
    "environment",
    "torch_build",
    "unsupported_reason",
]

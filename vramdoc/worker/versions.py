"""The versions that a measurement's figures depend on."""

from __future__ import annotations

import platform

import torch


def versions() -> dict[str, str]:
    """Versions of Python, torch, its CUDA and cuDNN."""
    found = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda or "",
    }
    cudnn = torch.backends.cudnn.version()
    if cudnn:
        found["cudnn"] = f"{cudnn // 10000}.{cudnn % 10000 // 100}.{cudnn % 100}"
    return found

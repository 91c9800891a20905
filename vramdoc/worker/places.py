"""Which source files are the user's, for naming the line that an allocation came from."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import torch

_TORCH = str(Path(torch.__file__).parent)
_OURS = str(Path(__file__).resolve().parent.parent)
_GENERATED = "/torchinductor_"  # torch.compile's folder, torch/_inductor/runtime/cache_dir_utils.py
_STANDARD_LIBRARY = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
_PACKAGES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


def is_internal(filename: str) -> bool:
    """Whether a frame in ``filename`` says nothing to a user: torch, vramdoc, the standard library, generated code.

    Other installed packages count as theirs: the line in a model library is where a model's memory is decided.
    """
    if filename.startswith(("<", _TORCH, _OURS)) or _GENERATED in filename:
        return True
    return filename.startswith(_STANDARD_LIBRARY) and not filename.startswith(_PACKAGES)

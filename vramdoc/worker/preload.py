"""Imports in the zygote what a run will import, so that not every child spends seconds on it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path

from vramdoc.report.measurement import Choice

SAFE = frozenset(
    {"accelerate", "diffusers", "einops", "numpy", "peft", "scipy", "timm", "torchaudio", "torchvision", "transformers"}
)
"""Packages known to neither touch the GPU nor start threads when they are imported: a fork would suffer from both."""

_NEEDED = {
    "lora": "peft",
    "offload_parameters": "torch.distributed.fsdp",
    "fsdp_bf16": "torch.distributed.fsdp",
    "fsdp_offload": "torch.distributed.fsdp",
    "zero1": "torch.distributed.optim",
    "zero2": "torch.distributed.fsdp",
    "zero3": "torch.distributed.fsdp",
    "hsdp": "torch.distributed.fsdp",
}
"""What the code of a measure imports that takes long."""


def preload_measures(choices: Iterable[Choice]) -> None:
    """Imports what these measures will import."""
    for choice in choices:
        if choice.name in _NEEDED:
            _import(_NEEDED[choice.name], ())


def preload(path: Path) -> None:
    """Imports the modules of :data:`SAFE` packages that the file at ``path`` imports at its top level.

    What cannot be imported is left to the child, where the error is the user's to see.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                _load(alias.name, (), path.parent)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            _load(statement.module, tuple(alias.name for alias in statement.names), path.parent)


def _load(module: str, names: tuple[str, ...], folder: Path) -> None:
    package = module.partition(".")[0]
    # A file of that name beside the target would come first.
    if package in SAFE and not (folder / package).exists() and not (folder / f"{package}.py").exists():
        _import(module, names)


def _import(module: str, names: tuple[str, ...]) -> None:
    # peft imports bitsandbytes where it is installed, and that starts CUDA: a fork could not use it any more.
    if module.startswith("peft") and importlib.util.find_spec("bitsandbytes"):
        return
    try:
        loaded = importlib.import_module(module)
        for name in names:
            getattr(loaded, name, None)  # transformers loads a class's module when the class is asked for
    except Exception:  # noqa: BLE001 - other people's code, which will fail again where the user sees it
        return

"""Imports in the zygote what the target will import, so that not every child spends seconds on it."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

SAFE = frozenset(
    {"accelerate", "diffusers", "einops", "numpy", "peft", "scipy", "timm", "torchaudio", "torchvision", "transformers"}
)
"""Packages known to neither touch the GPU nor start threads when they are imported: a fork would suffer from both."""


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
    if package not in SAFE or (folder / package).exists() or (folder / f"{package}.py").exists():
        return
    try:
        loaded = importlib.import_module(module)
        for name in names:
            getattr(loaded, name, None)  # transformers loads a class's module when the class is asked for
    except Exception:  # noqa: BLE001 - other people's code, which will fail again where the user sees it
        return

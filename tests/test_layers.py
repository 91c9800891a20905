"""The layers of the package, read from its imports: each may only look downwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import vramdoc

PACKAGE = Path(vramdoc.__file__).parent
TIERS = (
    {"cli", "integrations", "__main__"},
    {"render", "gate", "advise"},
    {"analysis", "runner"},
    {"target", "nullgpu", "hardware"},
    {"report"},
    {"units", "errors", "assumptions"},
)
LEVELS = {name: level for level, tier in enumerate(TIERS) for name in tier}
WORKER = "worker"  # stands beside the tiers: it runs in a process of its own
WORKER_MAY_USE = {"target", "nullgpu", "hardware", "report", "units", "errors", "assumptions"}
# Inside one tier these lean on each other, one way only.
WITHIN_A_TIER = {("units", "errors"), ("assumptions", "errors"), ("__main__", "cli")}
PARTS = sorted(
    path.stem if path.is_file() else path.name
    for path in PACKAGE.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").is_file()
)


def imported_modules(path: Path) -> Iterator[str]:
    """Absolute names that the file imports, anywhere in it; ``from a import b`` gives both ``a`` and ``a.b``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import hides which layer it reaches"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files_of(part: str) -> list[Path]:
    """The Python files of one part of the package."""
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{part}.py"]


def reached(part: str) -> dict[str, Path]:
    """The other parts that ``part`` imports, each with a file that does."""
    found = {}
    for path in files_of(part):
        for module in imported_modules(path):
            root, _, rest = module.partition(".")
            other = rest.partition(".")[0]
            if root == "vramdoc" and other in PARTS and other != part:
                found[other] = path
    return found


@pytest.mark.parametrize("part", [part for part in PARTS if part not in ("__init__", WORKER)])
def test_imports_only_downwards(part: str) -> None:
    """A part that looks up, or at a sibling, can no longer be understood or changed alone."""
    assert part in LEVELS, f"vramdoc.{part} has no place in the layers: give it one here"
    for other, path in reached(part).items():
        assert other != WORKER, f"{path} imports the worker, which belongs to a process of its own"
        allowed = LEVELS[other] > LEVELS[part] or (part, other) in WITHIN_A_TIER
        assert allowed, f"{path}: {part} may not import {other}"


def test_worker_uses_only_what_lies_below_it() -> None:
    """The worker carries no command line, no renderer and no parent's code into the user's process."""
    for other, path in reached(WORKER).items():
        assert other in WORKER_MAY_USE, f"{path}: the worker may not import {other}"


@pytest.mark.parametrize("part", [part for part in PARTS if part != WORKER])
def test_only_the_worker_imports_torch(part: str) -> None:
    """The parent answers in a fraction of a second because it never loads torch."""
    for path in files_of(part):
        heavy = {module.partition(".")[0] for module in imported_modules(path)} & {"torch", "numpy"}
        assert not heavy, f"{path} imports {heavy}"

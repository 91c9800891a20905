"""What the result of a run depends on, as one hash: the target's files, what is installed, the environment."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_VARIABLES = ("PYTORCH_", "TORCH", "CUDA_", "CUBLAS_", "CUDNN_", "NCCL_", "HF_", "TRANSFORMERS_", "LD_", "VRAMDOC_")
_NOT_OURS = ("VRAMDOC_DEBUG", "VRAMDOC_TARGET", "VRAMDOC_TIMEOUT")
"""Settings that do not change what a run measures, or that its request holds."""


def fingerprint(target: Path, environment: Mapping[str, str] = os.environ) -> str:
    """A hash of all that runs of ``target`` depend on beside their request.

    Covered are the target and the modules that it imports from its own folder or PYTHONPATH, files that it names in
    its text, vramdoc's own code, every installed distribution, Python, and the variables that torch reads. What a
    program downloads or computes a path for is not.
    """
    digest = hashlib.sha256()
    roots = [target.parent, *_import_roots()]
    for file in sorted(local_files(target, roots)):
        _add(digest, str(file), file.read_bytes())
    for file in sorted(_own_files()):
        _add(digest, str(file.relative_to(_PACKAGE)), file.read_bytes())
    _add(digest, "python", f"{platform.python_version()} {sys.executable}".encode())
    _add(digest, "installed", "\n".join(sorted(_installed())).encode())
    for name in sorted(environment):
        if name.startswith(_VARIABLES) and name not in _NOT_OURS:
            _add(digest, name, environment[name].encode(errors="surrogateescape"))
    return digest.hexdigest()


def _own_files() -> Iterator[Path]:
    """The files of vramdoc that a worker runs: what only reads its results does not change them."""
    yield _PACKAGE / "assumptions.py"
    for part in ("worker", "report", "target", "nullgpu"):
        yield from (_PACKAGE / part).rglob("*.py")
    yield from (_PACKAGE / "nullgpu" / "lib").rglob("*.so*")


def local_files(target: Path, roots: list[Path]) -> set[Path]:
    """``target``, the modules below ``roots`` that it imports, directly or not, and files that they name."""
    found: set[Path] = set()
    left = [target]
    while left:
        file = left.pop()
        if file in found:
            continue
        found.add(file)
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):
            continue  # the run will say so
        for name in _imported(tree, file, roots):
            left += [path for path in _module_files(name, roots) if path not in found]
        found |= _named_files(tree, file.parent)
    return found


def _imported(tree: ast.Module, file: Path, roots: list[Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, file, roots)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _absolute(node: ast.ImportFrom, file: Path, roots: list[Path]) -> str:
    """The module that ``from x import y`` names, a relative one counted from the root that ``file`` lies below."""
    module = node.module or ""
    if not node.level:
        return module
    package = file.parents[node.level - 1]
    for root in roots:
        if package.is_relative_to(root):
            return ".".join([*package.relative_to(root).parts, *filter(None, [module])])
    return module


def _module_files(name: str, roots: list[Path]) -> Iterator[Path]:
    """The file of a module below ``roots``, and those of the packages around it."""
    parts = name.split(".")
    for root in roots:
        for depth in range(1, len(parts) + 1):
            path = root.joinpath(*parts[:depth])
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if file.is_file():
                    yield file.resolve()


def _named_files(tree: ast.Module, folder: Path) -> set[Path]:
    """Files beside the module whose names stand in its text: configurations that it reads."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 200:
            try:
                path = folder / node.value
                if path.is_file() and path.stat().st_size < 1 << 20:
                    found.add(path.resolve())
            except (OSError, ValueError):
                continue  # not a name at all
    return found


def _import_roots() -> list[Path]:
    """Where the target's own modules may come from: PYTHONPATH, and folders that an editable install adds."""
    installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    entries = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *sys.path]
    roots = [Path(entry).resolve() for entry in entries if entry and entry not in installed]
    return [root for root in dict.fromkeys(roots) if root.is_dir() and root != _PACKAGE.parent]


def _installed() -> Iterator[str]:
    """Every distribution with its version, as their folders are called."""
    for name in ("purelib", "platlib"):
        folder = Path(sysconfig.get_path(name))
        yield from (entry.name for entry in folder.glob("*.dist-info"))


def _add(digest: hashlib._Hash, name: str, content: bytes) -> None:
    digest.update(f"{name}\0{len(content)}\0".encode(errors="surrogateescape"))
    digest.update(content)

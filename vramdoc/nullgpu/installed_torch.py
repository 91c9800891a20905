"""What the installed torch was built with, read from its files: torch itself is not imported, which takes seconds."""

from __future__ import annotations

import ast
import importlib.util
import mmap
import re
import subprocess
import sys
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import lru_cache
from pathlib import Path

# "sm_80 sm_90 compute_90" with the zero that ends it, as torch.cuda.get_arch_list() has it.
_ARCHITECTURES = re.compile(rb"((?:sm|compute)_\d+[af]?(?: (?:sm|compute)_\d+[af]?)*)\0")
_REQUIREMENT = re.compile(r"nvidia-(cudnn|nccl|cusparselt|nvshmem)-cu\d+\s*\(?==\s*([0-9.]+)")
_FIND = "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s and s.origin else '')"


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchBuild:
    """The torch that an interpreter would import. Versions are as text, None where torch's files do not say."""

    version: str  # "2.14.1+cu130"
    folder: Path  # where it is installed
    cuda: str | None  # "13.0"; None: a build without CUDA
    cudnn: str | None  # "9.24.0.43"
    nccl: str | None  # "2.30.7"
    cusparselt: str | None  # "0.8.1"
    nvshmem: str | None  # "3.4.5"
    architectures: tuple[int, ...]  # that its kernels are compiled for: 80 for sm_80; empty: not found
    ptx: tuple[int, ...]  # that can be compiled further on newer devices: 90 for compute_90


def torch_build(python: str | None = None) -> TorchBuild | None:
    """The torch of ``python`` (of this interpreter where None), or None where it has none."""
    init = _find(python)
    return _read(init.parent) if init else None


def _find(python: str | None) -> Path | None:
    if python is None or Path(python) == Path(sys.executable):
        spec = importlib.util.find_spec("torch")
        origin = spec.origin if spec else None
    else:
        command = [python, "-c", _FIND]
        origin = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return Path(origin) if origin else None


@lru_cache(maxsize=8)
def _read(folder: Path) -> TorchBuild:
    values = _assignments(folder / "version.py")
    version = values.get("__version__") or "unknown"
    required = _required(folder, version)
    flags = _architecture_flags(folder / "lib" / "libtorch_python.so")
    return TorchBuild(
        version=version,
        folder=folder,
        cuda=values.get("cuda"),
        cudnn=required.get("cudnn"),
        nccl=required.get("nccl"),
        cusparselt=required.get("cusparselt"),
        nvshmem=required.get("nvshmem"),
        architectures=tuple(int(re.sub(r"\D", "", flag)) for flag in flags if flag.startswith("sm_")),
        ptx=tuple(int(re.sub(r"\D", "", flag)) for flag in flags if flag.startswith("compute_")),
    )


def _assignments(path: Path) -> dict[str, str]:
    """The names that a module gives literal text, without running it."""
    found: dict[str, str] = {}
    if not path.is_file():
        return found
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found.update({target.id: value.value for target in targets if isinstance(target, ast.Name)})
    return found


def _required(folder: Path, version: str) -> dict[str, str]:
    """Versions of NVIDIA's libraries that the wheel depends on."""
    for metadata in sorted(folder.parent.glob("torch-*.dist-info/METADATA")):
        headers = HeaderParser().parsestr(metadata.read_text(encoding="utf-8"))
        if headers["Version"] in (version, version.partition("+")[0]):
            requirements = (_REQUIREMENT.match(line) for line in headers.get_all("Requires-Dist", []))
            return {match[1]: match[2] for match in requirements if match}
    return {}


def _architecture_flags(library: Path) -> list[str]:
    if not library.is_file():
        return []
    longest = b""
    with library.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(b"sm_")
        while at >= 0:
            match = _ARCHITECTURES.match(content, at)
            if match and len(match[1]) > len(longest):
                longest = match[1]
            at = content.find(b"sm_", match.end() if match else at + 3)
    return longest.decode().split()

"""The environment in which a program, and every process that it starts, runs on null GPUs.

torch's libraries look for NVIDIA's by DT_RPATH, which no variable overrides; but a name that is loaded already is
not looked for. So the engine and one empty stand-in for each name are loaded before everything else.
"""

from __future__ import annotations

import os
import platform
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from vramdoc.errors import InstallError
from vramdoc.nullgpu.engine import configuration
from vramdoc.nullgpu.installed_torch import TorchBuild, torch_build
from vramdoc.nullgpu.spec import DeviceSpec

LIBRARIES = Path(__file__).resolve().parent / "lib"
ENGINE = "libvramdoc_nullgpu.so"  # as build.py names it, which imports nothing and is not imported, being a program
_SUPPORTED_CUDA = ("12.", "13.")
_INDEX = "pip install torch --index-url https://download.pytorch.org/whl/"
_OTHER_TORCH = f"choose another GPU, or a torch that has them; builds for CUDA 12.6 reach further back: {_INDEX}cu126"


def environment(
    devices: Sequence[DeviceSpec],
    *,
    limited: bool = True,
    base: Mapping[str, str] | None = None,
    python: str | None = None,
) -> dict[str, str]:
    """The whole environment of a program on ``devices``: ``base`` (this process's where None) and what it takes.

    ``limited=False`` never refuses memory and still reports the devices' total. ``python`` is the interpreter whose
    torch will run (this one where None). Raises :class:`InstallError` where the engine is not built, torch is
    missing or a CPU build, or has no kernels for a device.
    """
    build = torch_build(python)
    _check_install(build)
    assert build is not None
    for device in devices:
        reason = unsupported_reason(device, build)
        if reason:
            raise InstallError(reason, hint=_OTHER_TORCH)
    folder = _without_separators(LIBRARIES)
    stubs = folder / "stubs"
    result = dict(os.environ if base is None else base)
    # The stand-ins resolve to the engine, so it comes first.
    preload = [str(folder / ENGINE), *(str(path) for path in sorted(stubs.iterdir()) if not path.name.startswith("."))]
    result["LD_PRELOAD"] = ":".join(preload + _others(result.get("LD_PRELOAD", "").replace(" ", ":")))
    result["LD_LIBRARY_PATH"] = ":".join([str(stubs), *_others(result.get("LD_LIBRARY_PATH", ""))])
    result["TRITON_LIBCUDA_PATH"] = str(stubs)
    result.pop("CUDA_VISIBLE_DEVICES", None)  # it names real ones; the program itself may set it
    # At its end torch waits up to ten seconds for autograd's threads, of which the engine may have stopped one
    # (csrc/exit.c).
    result.setdefault("TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT", "0")
    result["VRAMDOC_NULLGPU"] = configuration(devices, build, limited=limited)
    return result


def unsupported_reason(spec: DeviceSpec, build: TorchBuild) -> str | None:
    """Why ``build`` cannot run on the device, in one sentence; None where it can.

    Compiled kernels run on their own major compute capability from their own minor one on, PTX on any newer
    device (CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility").
    """
    if not build.architectures and not build.ptx:
        return None
    major, minor = spec.compute_capability
    compiled = any(arch // 10 == major and arch % 10 <= minor for arch in build.architectures)
    if compiled or any(arch <= 10 * major + minor for arch in build.ptx):
        return None
    names = ", ".join(f"{arch // 10}.{arch % 10}" for arch in (*build.architectures, *build.ptx))
    return (
        f"torch {build.version} has no kernels for the {spec.name} (compute capability {major}.{minor}): "
        f"it was built for {names}"
    )


def _check_install(build: TorchBuild | None) -> None:
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        raise InstallError(f"the null GPU runs on Linux x86-64, this is {sys.platform} {platform.machine()}")
    if build is None:
        raise InstallError("torch is not installed", hint="pip install torch")
    if build.cuda is None:
        raise InstallError(
            f"torch {build.version} is a build without CUDA",
            hint=f"install the CUDA build, which needs no GPU: {_INDEX}cu130",
        )
    if not build.cuda.startswith(_SUPPORTED_CUDA):
        raise InstallError(
            f"torch {build.version} was built with CUDA {build.cuda}; the null GPU covers CUDA 12 and 13",
            hint="install a torch built with CUDA 12 or 13",
        )
    if not (LIBRARIES / ENGINE).is_file():
        raise InstallError(
            "the null GPU is not built",
            hint="install vramdoc with pip, or run python -m vramdoc.nullgpu.build in its source tree",
        )


def _others(paths: str) -> list[str]:
    """What the user has in a path variable, without what an outer null GPU put there."""
    return [path for path in paths.split(":") if path and not _is_ours(path)]


def _is_ours(path: str) -> bool:
    place = Path(path)
    folders = (place, place.parent, place.parent.parent)
    return any((folder / ENGINE).is_file() for folder in folders)


def _without_separators(folder: Path) -> Path:
    """``folder``, or a link to it: LD_PRELOAD takes a space or a colon within a path for the end of it."""
    if not set(str(folder)) & set(" :\t\n"):
        return folder
    private = Path(tempfile.gettempdir()) / f"vramdoc-{os.getuid()}"
    if set(str(private)) & set(" :\t\n"):
        private = Path("/tmp") / private.name
    private.mkdir(mode=0o700, exist_ok=True)
    status = private.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise InstallError(f"{private} is not a private folder of this user", hint="remove it")
    # The name follows from the target, so a link that is there already is the right one.
    link = private / f"{folder.stat().st_dev:x}-{folder.stat().st_ino:x}"
    if not link.is_symlink() or link.readlink() != folder:
        fresh = private / f".{link.name}.{os.getpid()}"
        fresh.symlink_to(folder)
        fresh.replace(link)
    return link

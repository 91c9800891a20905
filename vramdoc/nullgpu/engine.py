"""The engine in this process: its configuration and its counters."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from vramdoc.errors import InstallError
from vramdoc.nullgpu.installed_torch import TorchBuild, torch_build
from vramdoc.nullgpu.spec import DeviceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the null GPU counted in this process."""

    unknown_reads: int  # small copies to the host of contents that nobody knows
    launches: int  # kernels and library calls that write device memory
    refused: int  # allocations that the full device refused


def _number(version: str | None, weights: tuple[int, ...]) -> int:
    """A version as NVIDIA's libraries count: ``"9.24.0.43"`` with (10000, 100, 1) is 92400; 0 where unknown."""
    parts = [int(part) for part in version.split(".") if part.isdigit()] if version else []
    return sum(part * weight for part, weight in zip(parts, weights, strict=False))


def configuration(devices: Sequence[DeviceSpec], build: TorchBuild, *, limited: bool) -> str:
    """The text that the engine reads (``csrc/device.c`` describes it)."""
    fields = [
        f"limited={int(limited)}",
        f"cuda={_number(build.cuda, (1000, 10))}",
        f"cudnn={_number(build.cudnn, (10000, 100, 1))}",
        f"nccl={_number(build.nccl, (10000, 100, 1))}",
        f"cusparselt={_number(build.cusparselt, (1000, 100, 1))}",
        f"nvshmem={_number(build.nvshmem, (10000, 100, 1))}",
    ]
    if build.architectures:
        fields.append("archs=" + ",".join(map(str, build.architectures)))
    if build.ptx:
        fields.append("ptx=" + ",".join(map(str, build.ptx)))
    for device in devices:
        numbers = (
            *device.compute_capability,
            device.multiprocessors,
            device.total_bytes,
            device.context_bytes,
            device.shared_memory_per_block,
            device.shared_memory_per_multiprocessor,
            device.l2_bytes,
        )
        fields.append("device=" + ",".join(map(str, numbers)) + "," + device.name.replace(";", " "))
    return ";".join(fields)


@cache  # counters() is asked around every operation of a recorded step
def _engine() -> ctypes.CDLL:
    engine = ctypes.CDLL(None)  # what is loaded already: a second copy would have devices of its own
    if not hasattr(engine, "vramdoc_nullgpu_configure"):
        raise InstallError(
            "this process does not run on a null GPU",
            hint="start it with the environment of vramdoc.nullgpu.environment",
        )
    return engine


def configure(devices: Sequence[DeviceSpec], *, limited: bool) -> None:
    """Sets the devices of this process, which carries the engine and has not used a device yet (a forked child).

    Raises :class:`InstallError` where the process does not carry it, or has allocated device memory.
    """
    build = torch_build()
    if build is None:
        raise InstallError("torch is not installed", hint="pip install torch")
    apply(configuration(devices, build, limited=limited))


def apply(text: str) -> None:
    """Like :func:`configure`, with a :func:`configuration` that another process made."""
    status = _engine().vramdoc_nullgpu_configure(text.encode())
    if status == 2:
        raise InstallError("the null GPU is in use: its devices cannot change", hint="configure it in a new process")
    if status != 0:
        raise InstallError(f"the null GPU does not understand its configuration: {text}")


def counters() -> Counters:
    """The counters of this process; raises :class:`InstallError` where it does not carry the engine."""
    values = (ctypes.c_uint64 * 3)()
    _engine().vramdoc_nullgpu_counters(values)
    return Counters(unknown_reads=values[0], launches=values[1], refused=values[2])

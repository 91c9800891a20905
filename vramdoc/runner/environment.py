"""What this machine has: torch, its CUDA build, GPUs and driver, and whether the null GPU covers it all."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from vramdoc import __version__, nullgpu
from vramdoc.errors import InstallError
from vramdoc.hardware import all_gpus
from vramdoc.runner.devices import device_specs

_CUDA_TORCH = "pip install torch, from the default index"


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchFacts:
    """The torch that workers would import, read from its files."""

    version: str
    cuda: str | None  # None: a CPU build
    cudnn: str | None
    nccl: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RealGpu:
    index: int
    name: str
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NullGpuState:
    ready: bool  # built, and covers this torch
    problem: str = ""  # why it is not
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    vramdoc: str
    python: str
    torch: TorchFacts | None  # None: not installed
    driver: str | None  # version; None: no driver
    gpus: tuple[RealGpu, ...]
    null_gpu: NullGpuState
    advice: tuple[str, ...]  # what to do where something is missing, each a sentence


def look() -> Environment:
    """Looks at this machine. Imports no torch, starts no CUDA."""
    build = nullgpu.torch_build()
    torch = (
        TorchFacts(version=build.version, cuda=build.cuda, cudnn=build.cudnn, nccl=build.nccl)
        if build is not None
        else None
    )
    driver, gpus = _real_gpus()
    state = _null_gpu_state()
    return Environment(
        vramdoc=__version__,
        python=f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        torch=torch,
        driver=driver,
        gpus=gpus,
        null_gpu=state,
        advice=_advice(torch, state),
    )


def _null_gpu_state() -> NullGpuState:
    try:
        nullgpu.environment(device_specs(all_gpus()[0]))
    except InstallError as error:
        return NullGpuState(ready=False, problem=error.message, hint=error.hint)
    return NullGpuState(ready=True)


def _real_gpus() -> tuple[str | None, tuple[RealGpu, ...]]:
    """Driver version and GPUs by NVML; no driver is the normal case of a machine without a GPU."""
    import pynvml  # here, since most commands never ask

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None, ()
    try:
        driver = pynvml.nvmlSystemGetDriverVersion()
        gpus = tuple(_real_gpu(index) for index in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError:
        return None, ()
    finally:
        pynvml.nvmlShutdown()
    return str(driver), gpus


def _real_gpu(index: int) -> RealGpu:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return RealGpu(
        index=index,
        name=str(pynvml.nvmlDeviceGetName(handle)),
        total_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
    )


def _advice(torch: TorchFacts | None, state: NullGpuState) -> tuple[str, ...]:
    if torch is None:
        return (f"Install PyTorch: {_CUDA_TORCH}. The CUDA build is needed; it needs no GPU.",)
    if torch.cuda is None:
        return (
            f"Install the CUDA build of PyTorch: {_CUDA_TORCH}. "
            "This one is a CPU build, which has no GPU memory to speak of; the CUDA build needs no GPU.",
        )
    if not state.ready:
        return (state.hint or state.problem,)
    return ()

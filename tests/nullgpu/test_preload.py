"""The environment that puts a program on null GPUs, whatever is installed and wherever."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from vramdoc import hardware, nullgpu
from vramdoc.errors import InstallError
from vramdoc.nullgpu import preload as module
from vramdoc.nullgpu.engine import configuration
from vramdoc.runner.devices import device_specs

ROOT = Path(__file__).resolve().parents[2]
_STEP = """
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.LazyLinear(2)).cuda()
model(torch.randn(2, 3, 8, 8, device="cuda")).sum().backward()
maps = open("/proc/self/maps").read()
print(torch.cuda.get_device_name(), "/nvidia/" in maps, "libvramdoc_nullgpu.so" in maps)
"""
_BUILD = nullgpu.TorchBuild(
    version="2.14.1+cu130",
    folder=Path("/nowhere/torch"),
    cuda="13.0",
    cudnn="9.24.0.43",
    nccl="2.30.7",
    cusparselt="0.8.1",
    nvshmem=None,
    architectures=(75, 80, 86, 90),
    ptx=(),
)


def _h100() -> nullgpu.DeviceSpec:
    return device_specs(hardware.find("h100"))[0]


def _run(arguments: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_nvidias_libraries_stay_out_where_they_are_installed() -> None:
    """torch's run path finds them before any variable; one real library among stand-ins would call a real driver."""
    assert _run(["-c", _STEP], nullgpu.environment([_h100()])) == "NVIDIA H100 80GB HBM3 False True"


def test_runs_without_nvidias_libraries_and_from_a_path_with_a_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody without a GPU should need gigabytes of libraries; and LD_PRELOAD ends a path at a space."""
    build = nullgpu.torch_build()
    assert build is not None
    packages = tmp_path / "packages"
    packages.mkdir()
    for entry in (*build.folder.parent.iterdir(), *Path(sysconfig.get_path("purelib")).iterdir()):
        link = packages / entry.name
        if not entry.name.startswith(("nvidia", "cuda", "__pycache__")) and not link.is_symlink():
            link.symlink_to(entry)
    libraries = tmp_path / "with space"
    shutil.copytree(module.LIBRARIES, libraries)
    monkeypatch.setattr(module, "LIBRARIES", libraries)
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(private))
    environment = nullgpu.environment([_h100()])
    assert " " not in environment["LD_PRELOAD"]
    linked = Path(environment["LD_PRELOAD"].split(":")[0]).parent
    assert linked.resolve() == libraries
    assert linked.parent.stat().st_mode & 0o777 == 0o700
    environment["PYTHONPATH"] = str(packages)
    assert _run(["-S", "-c", _STEP], environment) == "NVIDIA H100 80GB HBM3 False True"
    # A folder that others may write to is not trusted with what every child loads.
    linked.parent.chmod(0o777)
    with pytest.raises(InstallError, match="is not a private folder of this user"):
        nullgpu.environment([_h100()])


def test_keeps_what_the_user_has_set(tmp_path: Path) -> None:
    """A profiler in LD_PRELOAD stays, a nested null GPU replaces the outer one, real devices' choice goes."""
    base = {
        "LD_PRELOAD": "libjemalloc.so.2 /opt/tool.so",
        "LD_LIBRARY_PATH": str(tmp_path),
        "CUDA_VISIBLE_DEVICES": "",
        "HOME": "/home/someone",
    }
    once = nullgpu.environment([_h100()], base=base)
    preload = once["LD_PRELOAD"].split(":")
    assert preload[0] == str(module.LIBRARIES / module.ENGINE)
    assert preload[-2:] == ["libjemalloc.so.2", "/opt/tool.so"]
    assert once["LD_LIBRARY_PATH"] == f"{module.LIBRARIES / 'stubs'}:{tmp_path}"
    assert once["TRITON_LIBCUDA_PATH"] == str(module.LIBRARIES / "stubs")
    assert "CUDA_VISIBLE_DEVICES" not in once
    assert once["HOME"] == "/home/someone"
    # torch would wait ten seconds at its end for a thread that the engine has stopped.
    assert once["TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT"] == "0"
    assert nullgpu.environment([_h100()], base=once) == once


def test_configuration_names_versions_and_devices() -> None:
    """The engine reports the versions that torch was built with: cuDNN's check at import compares them."""
    spec = replace(_h100(), name="NVIDIA; H100", total_bytes=100, context_bytes=10)
    text = configuration([spec, spec], _BUILD, limited=False)
    assert text.split(";")[:7] == [
        "limited=0", "cuda=13000", "cudnn=92400", "nccl=23007", "cusparselt=801", "nvshmem=0", "archs=75,80,86,90",
    ]  # fmt: skip
    assert text.split(";")[7:] == ["device=9,0,132,100,10,232448,233472,52428800,NVIDIA  H100"] * 2


def test_kernels_decide_which_devices_a_torch_serves() -> None:
    """Binary code runs on its own major version from its minor one on, PTX on everything newer."""
    ada = replace(_h100(), name="NVIDIA GeForce RTX 4090", compute_capability=(8, 9))
    volta = replace(_h100(), name="Tesla V100-SXM2-16GB", compute_capability=(7, 0))
    blackwell = replace(_h100(), name="NVIDIA B200", compute_capability=(10, 0))
    assert nullgpu.unsupported_reason(ada, _BUILD) is None
    assert nullgpu.unsupported_reason(volta, _BUILD) == (
        "torch 2.14.1+cu130 has no kernels for the Tesla V100-SXM2-16GB (compute capability 7.0): "
        "it was built for 7.5, 8.0, 8.6, 9.0"
    )
    assert nullgpu.unsupported_reason(blackwell, _BUILD) is not None
    assert nullgpu.unsupported_reason(blackwell, replace(_BUILD, ptx=(90,))) is None


@pytest.mark.parametrize(
    ("build", "message", "hint"),
    [
        (None, "torch is not installed", "pip install torch"),
        (replace(_BUILD, version="2.14.1+cpu", cuda=None), "is a build without CUDA", "needs no GPU"),
        (replace(_BUILD, cuda="11.8"), "was built with CUDA 11.8", "CUDA 12 or 13"),
    ],
)
def test_says_which_torch_is_needed(
    monkeypatch: pytest.MonkeyPatch, build: nullgpu.TorchBuild | None, message: str, hint: str
) -> None:
    """The commonest trouble at installation must end in a line that says what to install."""
    monkeypatch.setattr(module, "torch_build", lambda _: build)
    with pytest.raises(InstallError, match=message) as caught:
        nullgpu.environment([_h100()])
    assert hint in caught.value.hint


def test_says_that_the_engine_is_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a source tree the libraries are made first."""
    monkeypatch.setattr(module, "LIBRARIES", tmp_path)
    with pytest.raises(InstallError, match="the null GPU is not built") as caught:
        nullgpu.environment([_h100()])
    assert "vramdoc.nullgpu.build" in caught.value.hint


def test_torch_is_read_from_files(tmp_path: Path) -> None:
    """Importing torch takes seconds and is the worker's business; a wheel's files say all that is needed."""
    packages = tmp_path / "packages"
    (packages / "torch" / "lib").mkdir(parents=True)
    (packages / "torch" / "__init__.py").write_text("raise RuntimeError('imported')")
    (packages / "torch" / "version.py").write_text(
        "from typing import Optional\n__version__ = '2.9.1+cu128'\ncuda: Optional[str] = '12.8'\n"
    )
    (packages / "torch-2.9.1.dist-info").mkdir()
    (packages / "torch-2.9.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+cu128\n"
        'Requires-Dist: nvidia-cudnn-cu12==9.10.2.21; platform_system == "Linux"\n'
        'Requires-Dist: nvidia-nccl-cu12==2.27.5; platform_system == "Linux"\n'
    )
    (packages / "torch" / "lib" / "libtorch_python.so").write_bytes(
        b"\0sm_80\0an sm_90 text\0sm_70 sm_80 sm_90a compute_90\0"
    )
    wrapper = tmp_path / "python"  # an interpreter that sees these packages
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" "$@"\n')
    wrapper.chmod(0o755)
    assert nullgpu.torch_build(str(wrapper)) == nullgpu.TorchBuild(
        version="2.9.1+cu128",
        folder=packages / "torch",
        cuda="12.8",
        cudnn="9.10.2.21",
        nccl="2.27.5",
        cusparselt=None,
        nvshmem=None,
        architectures=(70, 80, 90),
        ptx=(90,),
    )


def test_this_torch_agrees_with_its_files() -> None:
    """What is read off the files is what torch says when it is asked."""
    build = nullgpu.torch_build()
    assert build is not None
    code = "import torch; print(torch.__version__, torch.version.cuda, *torch.cuda.get_arch_list())"
    flags = [f"sm_{arch}" for arch in build.architectures] + [f"compute_{arch}" for arch in build.ptx]
    said = _run(["-c", code], nullgpu.environment([_h100()])).split()
    assert said[:2] == [build.version, build.cuda]
    assert [flag.rstrip("af") for flag in said[2:]] == flags


def test_a_process_without_the_engine_is_told_so() -> None:
    """Counters of a process that runs on a real GPU would all be zero, and mean nothing."""
    assert "VRAMDOC_NULLGPU" not in os.environ
    with pytest.raises(InstallError, match="does not run on a null GPU"):
        nullgpu.counters()

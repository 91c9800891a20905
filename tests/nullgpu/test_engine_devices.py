"""What a device says of itself, several devices in one process, and a process that changes them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vramdoc import hardware, nullgpu
from vramdoc.nullgpu.engine import configuration
from vramdoc.runner.devices import device_specs

ROOT = Path(__file__).resolve().parents[2]
_PROPERTIES = """
import ctypes, torch
class Attributes(ctypes.Structure):
    _fields_ = [("sizes", ctypes.c_size_t * 3), ("values", ctypes.c_int * 30)]
attributes = Attributes()
cuda = ctypes.CDLL(None)
cuda.cudaFuncGetAttributes(ctypes.byref(attributes), None)
blocks = ctypes.c_int()
cuda.cudaOccupancyMaxActiveBlocksPerMultiprocessor(ctypes.byref(blocks), None, 256, ctypes.c_size_t(0))
p = torch.cuda.get_device_properties(0)
emit({
    "name": p.name, "capability": [p.major, p.minor], "multiprocessors": p.multi_processor_count,
    "total": p.total_memory, "l2": p.L2_cache_size, "threads": p.max_threads_per_multi_processor,
    "shared": [p.shared_memory_per_block, p.shared_memory_per_block_optin, p.shared_memory_per_multiprocessor],
    "registers": p.regs_per_multiprocessor, "warp": p.warp_size,
    "kernel_arch": attributes.values[3], "occupancy": blocks.value,
    "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "bf16": torch.cuda.is_bf16_supported(False),
})
"""


# Figures of the "Technical Specifications per Compute Capability" table of the CUDA C++ Programming Guide. The kernels
# are of the newest architecture of torch's wheel that the device can run: there is none for 8.9, which runs 8.6's.
@pytest.mark.parametrize(
    ("gpu", "capability", "threads", "shared_kib", "kernel_arch"),
    [
        ("a100-40", [8, 0], 2048, [48, 163, 164], 80),
        ("h100", [9, 0], 2048, [48, 227, 228], 90),
        ("a6000", [8, 6], 1536, [48, 99, 100], 86),
        ("4090", [8, 9], 1536, [48, 99, 100], 86),
    ],
)
def test_properties_are_those_of_the_named_gpu(
    on_null_gpu: Callable[..., Any],
    gpu: str,
    capability: list[int],
    threads: int,
    shared_kib: list[int],
    kernel_arch: int,
) -> None:
    """torch chooses kernels and workspaces by these figures."""
    spec = device_specs(hardware.find(gpu))[0]
    assert on_null_gpu(_PROPERTIES, gpu) == {
        "name": spec.name,
        "capability": capability,
        "multiprocessors": spec.multiprocessors,
        "total": spec.total_bytes,
        "l2": spec.l2_bytes,
        "threads": threads,
        "shared": [1024 * size for size in shared_kib],
        "registers": 65536,
        "warp": 32,
        "kernel_arch": kernel_arch,
        "occupancy": threads // 256,
        "cuda": _build().cuda,
        "cudnn": _version_number(_build().cudnn),
        "bf16": True,
    }


def _build() -> nullgpu.TorchBuild:
    build = nullgpu.torch_build()
    assert build is not None
    return build


def _version_number(version: str | None) -> int:
    assert version is not None
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    return 10000 * major + 100 * minor + patch


def _run(code: str, environment: dict[str, str]) -> Any:
    """What the program prints last, as JSON."""
    environment = {**environment, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_two_kinds_of_device_in_one_process() -> None:
    """Each has its own account, peers reach each other, and CUDA_VISIBLE_DEVICES chooses, as on a real machine."""
    specs = [*device_specs(hardware.find("a100-40")), *device_specs(hardware.find("h100"))]
    result = _run(
        """
import json, os, subprocess, sys, torch
def taken(i):
    free, total = torch.cuda.mem_get_info(i)
    return total - free
empty = [taken(0), taken(1)]
block = torch.empty(100 * 2**20, dtype=torch.uint8, device="cuda:1")
moved = torch.tensor([1, 2, 3]).to("cuda:0").to("cuda:1")
hidden = "import torch; print(torch.cuda.device_count(), torch.cuda.get_device_name(0))"
second = subprocess.run([sys.executable, "-c", hidden], env={**os.environ, "CUDA_VISIBLE_DEVICES": "1"},
                        capture_output=True, text=True).stdout.strip()
print(json.dumps({
    "names": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    "taken": [taken(0) - empty[0], taken(1) - empty[1]],
    "peers": [torch.cuda.can_device_access_peer(0, 1), torch.cuda.can_device_access_peer(1, 0)],
    "moved": [moved.tolist(), str(moved.device)],
    "second": second,
}))
""",
        nullgpu.environment(specs),
    )
    assert result["names"] == [spec.name for spec in specs]
    assert result["taken"] == [2 * 2**20, 102 * 2**20]  # a small tensor takes one unit
    assert result["peers"] == [True, True]
    assert result["moved"] == [[1, 2, 3], "cuda:1"]
    assert result["second"] == f"1 {specs[1].name}"


def test_forked_child_sets_its_own_devices() -> None:
    """The worker imports torch once and forks a child for each measurement, each on other devices."""
    result = _run(
        """
import json, os, torch, torch._dynamo
from vramdoc import hardware, nullgpu
from vramdoc.errors import InstallError
from vramdoc.runner.devices import device_specs
answers = []
for gpu, count, limited in (("h100", 2, True), ("a6000", 1, False)):
    out, into = os.pipe()
    if os.fork() == 0:
        nullgpu.configure(device_specs(hardware.find(gpu), count), limited=limited)
        try:
            torch.empty(100 * 2**30, dtype=torch.uint8, device="cuda")
            refused = False
        except torch.OutOfMemoryError:
            refused = True
        try:
            nullgpu.configure(device_specs(hardware.find("h100")), limited=True)
            late = False
        except InstallError:
            late = True
        os.write(into, json.dumps([torch.cuda.get_device_name(0), torch.cuda.device_count(), refused, late]).encode())
        os._exit(0)
    os.wait()
    answers.append(json.loads(os.read(out, 4096)))
print(json.dumps(answers))
""",
        nullgpu.environment(device_specs(hardware.find("a100-40"))),
    )
    assert result == [["NVIDIA H100 80GB HBM3", 2, True, True], ["NVIDIA RTX A6000", 1, False, True]]


def test_device_without_kernels_fails_as_in_life() -> None:
    """A GPU that torch has no kernels for must not be simulated: memory is granted, a kernel is not."""
    spec = replace(device_specs(hardware.find("v100"))[0], name="Tesla K80", compute_capability=(3, 7))
    reason = nullgpu.unsupported_reason(spec, _build())
    assert reason is not None
    assert reason.startswith(f"torch {_build().version} has no kernels for the {spec.name} (compute capability 3.7)")
    environment = nullgpu.environment(device_specs(hardware.find("h100")))
    environment["VRAMDOC_NULLGPU"] = configuration([spec], _build(), limited=True)
    message = _run(
        """
import json, torch
tensor = torch.empty(3, device="cuda")
try:
    tensor + 1
    print(json.dumps(""))
except torch.AcceleratorError as error:
    print(json.dumps(str(error)))
""",
        environment,
    )
    assert message.startswith("CUDA error: no kernel image is available for execution on the device")


def test_tensors_and_pinned_batches_cross_processes(tmp_path: Path) -> None:
    """A tensor handed to another process has an address there at no charge; loaders pin batches in a thread."""
    script = tmp_path / "script.py"
    script.write_text(
        """
import json, torch
from torch.utils.data import DataLoader
def receive(tensors, answers):
    tensor = tensors.get()
    answers.put([list(tensor.shape), torch.cuda.memory_allocated(), (tensor + 1).is_cuda])
    del tensor
if __name__ == "__main__":
    context = torch.multiprocessing.get_context("spawn")
    tensors, answers = context.Queue(), context.Queue()
    child = context.Process(target=receive, args=(tensors, answers))
    child.start()
    tensor = torch.ones(5, 3, device="cuda")
    tensors.put(tensor)
    got = answers.get()
    child.join()
    loader = DataLoader(torch.arange(8), batch_size=4, num_workers=1, pin_memory=True)
    batches = [[batch.is_pinned(), batch.cuda(non_blocking=True).tolist()] for batch in loader]
    print(json.dumps({"got": got, "exit": child.exitcode, "batches": batches}))
"""
    )
    environment = {**nullgpu.environment(device_specs(hardware.find("h100"))), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "got": [[5, 3], 0, True],
        "exit": 0,
        "batches": [[True, [0, 1, 2, 3]], [True, [4, 5, 6, 7]]],
    }

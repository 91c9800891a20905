"""Device memory: what is granted, what is refused, and what torch makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vramdoc import hardware
from vramdoc.runner.devices import device_specs

MIB = 2**20


def test_refuses_exactly_when_full(on_null_gpu: Callable[..., Any]) -> None:
    """The last unit that fits is granted and one byte more is not, or peaks near the limit come out wrong."""
    spec = device_specs(hardware.find("a100-40"))[0]
    result = on_null_gpu(
        """
import ctypes, torch
cuda = ctypes.CDLL(None)
free, total = torch.cuda.mem_get_info()
units = free // 2**21
first, second, third = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
size = ctypes.c_size_t
statuses = [
    cuda.cudaMalloc(ctypes.byref(first), size((units - 1) * 2**21)),
    cuda.cudaMalloc(ctypes.byref(second), size(1)),
    cuda.cudaMalloc(ctypes.byref(third), size(1)),
]
full = torch.cuda.mem_get_info()[0]
statuses += [cuda.cudaFree(second), cuda.cudaFree(second), cuda.cudaMalloc(ctypes.byref(third), size(2**21))]
emit({"free": free, "total": total, "statuses": statuses, "full": full, "reused": third.value == second.value})
"""
    )
    assert result["total"] == spec.total_bytes
    assert result["free"] == spec.total_bytes - spec.context_bytes
    assert result["statuses"] == [0, 0, 2, 0, 1, 0]
    assert result["full"] == result["free"] % (2 * MIB)
    assert result["reused"]


def test_torch_retries_and_says_what_was_free(on_null_gpu: Callable[..., Any]) -> None:
    """torch's own retry and message must come out as on a full GPU, for users know them."""
    result = on_null_gpu(
        """
import torch
from vramdoc import nullgpu
blocks = [torch.empty(8 * 2**30, dtype=torch.uint8, device="cuda") for _ in range(4)]
before = torch.cuda.memory_stats()["num_alloc_retries"]
del blocks
torch.empty(20 * 2**30, dtype=torch.uint8, device="cuda")  # fits only once the cached blocks are given back
after = torch.cuda.memory_stats()["num_alloc_retries"]
try:
    torch.empty(2**40, dtype=torch.uint8, device="cuda")
    message = ""
except torch.OutOfMemoryError as error:
    message = str(error)
emit({"before": before, "after": after, "ooms": torch.cuda.memory_stats()["num_ooms"], "message": message,
      "refused": nullgpu.counters().refused})
"""
    )
    assert (result["before"], result["after"], result["ooms"]) == (0, 1, 1)
    expected = "CUDA out of memory. Tried to allocate 1024.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which "
    assert result["message"].startswith(expected)
    assert result["refused"] == 3  # the first try at 20 GiB, both tries at 1 TiB


@pytest.mark.parametrize("setting", ["expandable_segments:True", "backend:cudaMallocAsync"])
def test_other_allocators_account_the_same(on_null_gpu: Callable[..., Any], setting: str) -> None:
    """Physical memory, pools and plain allocations take from one account and give back to it."""
    result = on_null_gpu(
        f"""
import os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "{setting}"
import torch
free = torch.cuda.mem_get_info()[0]
blocks = [torch.empty(300 * 2**20, dtype=torch.uint8, device="cuda") for _ in range(5)]
taken = free - torch.cuda.mem_get_info()[0]
figures = [taken, torch.cuda.memory_allocated(), torch.cuda.memory_reserved()]
try:
    torch.empty(60 * 2**30, dtype=torch.uint8, device="cuda")
    refused = False
except torch.OutOfMemoryError:
    refused = True
del blocks
torch.cuda.empty_cache()
emit({{"figures": figures, "refused": refused, "left": free - torch.cuda.mem_get_info()[0],
      "peak": torch.cuda.max_memory_allocated()}})
"""
    )
    assert result["figures"] == [1500 * MIB] * 3
    assert result["refused"]
    assert result["left"] == 0
    assert result["peak"] == 1500 * MIB


def test_unlimited_device_grants_more_than_it_has(on_null_gpu: Callable[..., Any]) -> None:
    """A step that does not fit is measured in full: nothing is refused, and the total stays the named GPU's."""
    result = on_null_gpu(
        """
import ctypes, torch
blocks = [torch.empty(30 * 2**30, dtype=torch.uint8, device="cuda") for _ in range(3)]
figures = [torch.cuda.memory_allocated(), *torch.cuda.mem_get_info(), torch.cuda.memory_stats()["num_alloc_retries"]]
cuda = ctypes.CDLL(None)
def allocate(size):
    pointer = ctypes.c_void_p()
    return cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)), pointer
terabyte = 2**40
many = [allocate(4 * terabyte) for _ in range(8)]
for _, pointer in many[1:4]:
    cuda.cudaFree(pointer)
emit({"figures": figures, "many": [status for status, _ in many], "joined": allocate(12 * terabyte)[0]})
""",
        limited=False,
    )
    assert result["figures"] == [90 * 2**30, 0, device_specs(hardware.find("a100-40"))[0].total_bytes, 0]
    # Addresses end at 32 TiB; those that lie side by side serve a larger allocation once they are free.
    assert result["many"] == [0] * 7 + [2]
    assert result["joined"] == 0


def test_host_memory_is_known_for_what_it_is(on_null_gpu: Callable[..., Any]) -> None:
    """torch asks CUDA whether memory is pinned; a wrong answer changes which copies it makes."""
    result = on_null_gpu(
        """
import ctypes, torch
plain, pinned = torch.arange(4), torch.arange(4).pin_memory()
registered = torch.zeros(4096)
cuda = ctypes.CDLL(None)
address, size = ctypes.c_void_p(registered.data_ptr()), ctypes.c_size_t(4 * 4096)
statuses = [cuda.cudaHostRegister(address, size, 0)]
known = [plain.is_pinned(), pinned.is_pinned(), registered.is_pinned()]
statuses += [cuda.cudaHostUnregister(address), cuda.cudaHostUnregister(address)]
managed = ctypes.c_void_p()
statuses.append(cuda.cudaMallocManaged(ctypes.byref(managed), ctypes.c_size_t(64), 1))
ctypes.memset(managed.value, 7, 64)  # it is memory that the host can write
statuses.append(cuda.cudaFree(managed))
cuda.cudaGetLastError()  # the failure was ours, not torch's
emit({"known": known, "statuses": statuses, "round": pinned.cuda(non_blocking=True).tolist(),
      "free": torch.cuda.mem_get_info()[0]})
"""
    )
    assert result["known"] == [False, True, True]
    assert result["statuses"] == [0, 0, 713, 0, 0]
    assert result["round"] == [0, 1, 2, 3]

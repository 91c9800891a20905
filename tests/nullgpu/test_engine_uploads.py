"""What device memory holds: uploads until the next launch, zeros after it, and the count of what nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_uploads_read_back_until_a_launch(on_null_gpu: Callable[..., Any]) -> None:
    """Start-up checks of distributed training compare what they have just sent; nothing else may look known."""
    reads = on_null_gpu(
        """
import ctypes, torch
from vramdoc import nullgpu

cuda = ctypes.CDLL(None)
def unknown():
    return nullgpu.counters().unknown_reads
out = {}
source = torch.arange(10)
device = source.cuda()
out["upload"] = device.tolist()
out["part"] = device[3:5].tolist()
copy = torch.empty_like(device)
copy.copy_(device)
out["copy"] = copy.tolist()
device[2:4].copy_(torch.tensor([70, 80]))
out["overwritten"] = device.tolist()
filled = torch.empty(5, dtype=torch.uint8, device="cuda")
cuda.cudaMemset(ctypes.c_void_p(filled.data_ptr()), 9, ctypes.c_size_t(3))
cuda.cudaMemset(ctypes.c_void_p(filled.data_ptr() + 3), 4, ctypes.c_size_t(2))
out["filled"] = filled.tolist()
out["known"] = unknown()
out["launches"] = nullgpu.counters().launches
device + 1
out["after_launch"] = device.tolist()
out["unknown"] = unknown()
out["launched"] = nullgpu.counters().launches
limit = torch.ones(2**20, dtype=torch.uint8).cuda()
beyond = torch.ones(2**20 + 1, dtype=torch.uint8).cuda()
out["largest"] = [int(limit.cpu().sum()), unknown()]
out["large"] = [int(beyond.cpu().sum()), unknown()]  # read in one piece it is no small read
out["small_of_large"] = [int(beyond[0]), unknown()]
known_part = torch.zeros(4, dtype=torch.int64, device="cuda")
known_part[:2].copy_(torch.tensor([5, 6]))
out["half"] = [known_part.tolist(), unknown()]
emit(out)
"""
    )
    assert reads["upload"] == list(range(10))
    assert reads["part"] == [3, 4]
    assert reads["copy"] == list(range(10))
    assert reads["overwritten"] == [0, 1, 70, 80, 4, 5, 6, 7, 8, 9]
    assert reads["filled"] == [9, 9, 9, 4, 4]
    assert (reads["known"], reads["launches"]) == (0, 0)
    # A launch may have changed anything.
    assert reads["after_launch"] == [0] * 10
    assert (reads["unknown"], reads["launched"]) == (1, 1)
    # One MiB is kept, one byte more is not, and only small reads are counted.
    assert reads["largest"] == [2**20, 1]
    assert reads["large"] == [0, 1]
    assert reads["small_of_large"] == [0, 2]
    # What is known in part is unknown, and counted.
    assert reads["half"] == [[5, 6, 0, 0], 3]

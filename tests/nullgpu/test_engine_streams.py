"""Streams, events, graphs, and what compiled code asks of the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_graphs_capture_side_streams_and_replay(on_null_gpu: Callable[..., Any]) -> None:
    """torch refuses an empty graph and a capture that side streams do not join; a replay counts as a launch."""
    result = on_null_gpu(
        """
import torch
from vramdoc import nullgpu
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
batch = torch.randn(16, 64, device="cuda")
def step():
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
warm = torch.cuda.Stream()
warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm):
    step()
torch.cuda.current_stream().wait_stream(warm)
side, graph, seen = torch.cuda.Stream(), torch.cuda.CUDAGraph(), []
with torch.cuda.graph(graph):
    step()
    with torch.cuda.stream(side):
        seen.append(torch.cuda.is_current_stream_capturing())
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        seen.append(torch.cuda.is_current_stream_capturing())
        batch + 1
    torch.cuda.current_stream().wait_stream(side)
seen.append(torch.cuda.is_current_stream_capturing())
before = nullgpu.counters().launches
graph.replay()
emit({"seen": seen, "replay": nullgpu.counters().launches - before})
"""
    )
    assert result == {"seen": [False, True, False], "replay": 1}


def test_events_streams_and_run_time_compilation(on_null_gpu: Callable[..., Any]) -> None:
    """Autotuners divide by event times, and jitted kernels go through NVRTC and the driver's module calls."""
    result = on_null_gpu(
        """
import time, torch
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
time.sleep(0.02)
end.record()
slept = start.elapsed_time(end)
start.record()
end.record()
stream = torch.cuda.Stream(priority=-1)
complex_abs = torch.ones(4, dtype=torch.complex64, device="cuda").abs().shape[0]
airy = torch.special.airy_ai(torch.ones(3, device="cuda")).shape[0]
values = torch.randn(10000, device="cuda")
emit({
    "slept": slept >= 20, "never_zero": start.elapsed_time(end) > 0, "done": end.query(),
    "priority": stream.priority, "jitted": [complex_abs, airy],
    "sorted": [values.sort().values.shape[0], values.topk(5).values.shape[0], values.cumsum(0).shape[0]],
})
"""
    )
    assert result == {
        "slept": True,
        "never_zero": True,
        "done": True,
        "priority": -1,
        "jitted": [4, 3],
        "sorted": [10000, 5, 10000],
    }


def test_monitoring_library_shows_the_same_device(on_null_gpu: Callable[..., Any]) -> None:
    """Programs print what NVML says; torch asks it for counts and fabrics."""
    result = on_null_gpu(
        """
import pynvml, torch
block = torch.empty(100 * 2**20, dtype=torch.uint8, device="cuda")
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
free, total = torch.cuda.mem_get_info()
emit({"name": pynvml.nvmlDeviceGetName(handle) == torch.cuda.get_device_name(0),
      "count": pynvml.nvmlDeviceGetCount(), "memory": [memory.total - total, memory.free - free],
      "uuid": pynvml.nvmlDeviceGetUUID(handle) == "GPU-" + str(torch.cuda.get_device_properties(0).uuid),
      "used": torch.cuda.device_memory_used() == total - free})
"""
    )
    assert result == {"name": True, "count": 1, "memory": [0, 0], "uuid": True, "used": True}


def test_unknown_driver_function_fails_with_its_name(on_null_gpu: Callable[..., Any]) -> None:
    """A call that is not provided must never look like a success."""
    result = on_null_gpu(
        """
import ctypes, os, tempfile
cuda = ctypes.CDLL("libcuda.so.1")
found, status = ctypes.c_void_p(), ctypes.c_int()
asked = cuda.cuGetProcAddress_v2(b"cuNoSuchThing", ctypes.byref(found), 13000, ctypes.c_uint64(0), ctypes.byref(status))
saved = os.dup(2)
with tempfile.TemporaryFile() as stream:
    os.dup2(stream.fileno(), 2)
    called = [ctypes.CFUNCTYPE(ctypes.c_int)(found.value)() for _ in range(2)]
    os.dup2(saved, 2)
    stream.seek(0)
    said = stream.read().decode()
known = ctypes.c_void_p()
cuda.cuGetProcAddress_v2(b"cuMemAlloc", ctypes.byref(known), 13000, ctypes.c_uint64(0), None)
same = known.value == ctypes.cast(cuda.cuMemAlloc_v2, ctypes.c_void_p).value
emit({"asked": asked, "called": called, "said": said, "same": same})
"""
    )
    assert result == {
        "asked": 0,
        "called": [801, 801],
        "said": "vramdoc: the null GPU does not provide cuNoSuchThing (status 801)\n",
        "same": True,
    }

"""Shadows beside what else sits between a program and the device: collectives, wrappers, modes, Triton kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RANKS_AND_MODES = """
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor, Shard, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from vramdoc.worker.values import ValueShadow

class Counter(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))

def rules(shadow):
    return sorted({a.rule for a in shadow.assumptions()})

found = {}
with ValueShadow() as shadow:
    with Counter() as counter:
        x = torch.arange(6, device="cuda")
        found["mode"] = [x[x > 2].tolist(), torch.tensor([4], device="cuda").item()]
    found["mode saw"] = counter.calls > 3
    layer, mask = nn.Linear(16, 16).cuda(), torch.tensor([True, False] * 4).cuda()
    y = checkpoint(lambda x: layer(x)[mask], torch.randn(8, 16).cuda().requires_grad_(), use_reentrant=False)
    y.sum().backward()  # the recomputation reads the mask again
    found["checkpoint"] = list(y.shape)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        offloaded = nn.Linear(512, 512).cuda()(torch.randn(2048, 512, device="cuda")).relu()
    offloaded.sum().backward()
    torch.linalg.inv(torch.eye(4).cuda())
    log_probs = torch.randn(30, 2, 20).cuda().log_softmax(-1)
    target = torch.ones(2, 5, dtype=torch.long).cuda()
    loss = nn.functional.ctc_loss(log_probs, target, torch.tensor([30, 20]).cuda(), torch.tensor([5, 4]).cuda())
    found["ctc"] = list(loss.shape)
    found["before ranks"] = rules(shadow)

    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    own = torch.tensor([3], device="cuda")
    total, most, parts = own.clone(), own.clone(), [torch.empty_like(own) for _ in range(4)]
    dist.all_reduce(total)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    dist.all_gather(parts, own)
    found["ranks"] = [total.item(), most.item(), [part.item() for part in parts]]
    sharded = DTensor.from_local(
        torch.tensor([5.0, 6.0], device="cuda"), init_device_mesh("cuda", (4,)), [Shard(0)], run_check=False
    )
    found["sharded"] = [(2 * sharded + 1).to_local().tolist(), sharded.sum().full_tensor().item()]
    found["after"] = rules(shadow)
with ValueShadow({"ranks": "unknown"}) as shadow:
    dist.all_reduce(own)
    found["unknown ranks"] = [own.item(), rules(shadow)]
dist.destroy_process_group()
emit(found)
"""


def test_shadows_work_beside_ranks_wrappers_and_modes(on_null_gpu: Callable[..., Any]) -> None:
    """The worker's own dispatch mode, DTensor, recomputation and offloading all meet the shadows."""
    assert on_null_gpu(RANKS_AND_MODES) == {
        "mode": [[3, 4, 5], 4],
        "mode saw": True,
        "checkpoint": [4, 16],
        "ctc": [],
        "before ranks": [],
        "ranks": [12, 3, [3, 3, 3, 3]],
        "sharded": [[11.0, 13.0], 44.0],
        "after": ["ranks"],
        "unknown ranks": [1, ["number"]],
    }


KERNELS = """
import os
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # one kernel: a pool of compilers would take longer to start
import torch
import triton
import triton.language as tl
from torch import nn
from torch._dynamo.utils import counters
from vramdoc.worker.values import ValueShadow

@triton.jit
def add_one(values, SIZE: tl.constexpr):
    place = values + tl.arange(0, SIZE)
    tl.store(place, tl.load(place) + 1)

class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.steps.add_(1)
        return x.relu()

found = {}
with ValueShadow() as shadow:
    model = Counting().cuda()
    compiled = torch.compile(model)
    found["before"] = [model.steps.item(), shadow.exact]
    compiled(torch.zeros(8, 64, device="cuda"))
    found["graphs"] = counters["stats"]["unique_graphs"]
    model.steps.item()
    found["compiled"] = [a.rule for a in shadow.assumptions()]
    values = torch.zeros(16, dtype=torch.int32, device="cuda")
    add_one[(1,)](values, SIZE=16)
    values[0].item()
    found["written by hand"] = [a.reads for a in shadow.assumptions()]
emit(found)
"""


def test_what_a_triton_kernel_writes_is_unknown(on_null_gpu: Callable[..., Any]) -> None:
    """Kernels write past the dispatcher: an old value must not pass for exact. And torch.compile stays on."""
    assert on_null_gpu(KERNELS) == {
        "before": [0, True],
        "graphs": 1,
        "compiled": ["number"],
        "written by hand": [1, 1],
    }

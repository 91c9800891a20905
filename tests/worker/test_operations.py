"""What one step asks of the GPU, held to closed forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vramdoc import hardware, nullgpu
from vramdoc.report.measurement import Choice, Measurement, Request
from vramdoc.report.operations import Operation
from vramdoc.runner.devices import device_specs
from vramdoc.runner.process import Worker
from vramdoc.runner.profile import worker_environment

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models"

CALLS = """
import dataclasses
import torch
from torch.nn import functional
from vramdoc.worker.operations import OperationRecorder

rows = {}
def see(name, run):
    with OperationRecorder(lambda: "forward") as recorder:
        run()
    rows[name] = [dataclasses.asdict(row) for row in recorder.operations() if row.kind != "view"]

half = dict(device="cuda", dtype=torch.bfloat16)
left, right = torch.zeros(64, 128, **half), torch.zeros(128, 256, **half)
see("product", lambda: left @ right)
single = torch.zeros(64, 128, device="cuda"), torch.zeros(128, 256, device="cuda")
see("fp32", lambda: single[0] @ single[1])
torch.backends.cuda.matmul.allow_tf32 = True
see("tf32", lambda: single[0] @ single[1])

wide, narrow = torch.zeros(1000, 300, device="cuda"), torch.zeros(300, device="cuda")
see("add", lambda: wide.add_(narrow.expand(1000, 300)))
see("copy", lambda: wide.copy_(torch.zeros_like(wide)))
see("view", lambda: wide.t().reshape(1000, 300)[:2])
host = torch.zeros(1000)
see("to_gpu", lambda: host.cuda())
see("to_host", lambda: narrow.cpu())

images = torch.zeros(2, 32, 16, 16, device="cuda", requires_grad=True)
for name, groups in (("dense", 1), ("grouped", 4), ("depthwise", 32)):
    weight = torch.zeros(32, 32 // groups, 3, 3, device="cuda", requires_grad=True)
    see(name, lambda: functional.conv2d(images, weight, padding=1, groups=groups).sum().backward())
last = images.detach().to(memory_format=torch.channels_last)
see("channels_last", lambda: functional.conv2d(last, torch.zeros(8, 32, 1, 1, device="cuda")))

query = torch.zeros(2, 4, 64, 32, **half)
see("causal", lambda: functional.scaled_dot_product_attention(query, query, query, is_causal=True))
table, ids = torch.zeros(50_000, 64, device="cuda"), torch.zeros(10, dtype=torch.long, device="cuda")
see("embedding", lambda: functional.embedding(ids, table))

parameter = torch.nn.Parameter(torch.zeros(1_000_000, device="cuda"))
parameter.grad = torch.zeros_like(parameter)
optimizer = torch.optim.AdamW([parameter], fused=True)
optimizer.step()
see("fused", optimizer.step)
lstm = torch.nn.LSTM(32, 64, device="cuda")
sequence = torch.zeros(5, 3, 32, device="cuda")
see("recurrent", lambda: lstm(sequence))
emit(rows)
"""


def one(rows: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The only row of ``kind``."""
    (row,) = [row for row in rows if row["kind"] == kind]
    return row


def test_arithmetic_bytes_and_types(on_null_gpu: Callable[..., Any]) -> None:
    """The time model is only as good as what it is given: every figure here has a closed form."""
    rows = on_null_gpu(CALLS)
    product = one(rows["product"], "matmul")
    assert (product["dtype"], product["flops"]) == ("bf16", 2 * 64 * 128 * 256)
    assert product["bytes"] == 2 * (64 * 128 + 128 * 256 + 64 * 256)
    assert (product["shape"], product["count"], product["launches"]) == ([1, 64, 256, 128], 1, 1)
    assert one(rows["fp32"], "matmul")["dtype"] == "fp32"
    assert one(rows["tf32"], "matmul")["dtype"] == "tf32", "TF32 is on: another rate"

    assert one(rows["add"], "elementwise")["bytes"] == 4 * (2 * 300_000 + 300), "what is expanded is read once"
    copied = [row["bytes"] for row in rows["copy"] if row["op"] == "aten.copy_"]
    assert copied == [2 * 4 * 300_000], "a copy does not read what it overwrites"
    assert [row["op"] for row in rows["view"]] == ["aten.clone"], "only the reshape moves anything"
    assert (rows["to_gpu"][0]["op"], rows["to_gpu"][0]["bytes"]) == ("to_gpu", 4000)
    assert (rows["to_host"][0]["op"], rows["to_host"][0]["bytes"]) == ("to_host", 1200)

    causal = one(rows["causal"], "attention")
    assert causal["flops"] == 4 * 2 * 4 * 64 * 64 * 32 // 2, "what the mask hides is skipped"
    assert causal["shape"] == [2, 4, 64, 64, 32]
    looked_up = one(rows["embedding"], "index")["bytes"]
    assert looked_up == 2 * 4 * 10 * 64 + 8 * 10, "ten rows, not the table"
    (fused,) = [row["bytes"] for row in rows["fused"] if row["op"] == "aten._fused_adamw_"]
    assert fused == pytest.approx(7 * 4_000_000, rel=1e-5), "parameter and both moments twice, the gradient once"
    assert one(rows["recurrent"], "recurrent")["flops"] == 2 * 5 * 3 * 4 * 64 * (32 + 64)

    for name, kind, groups in (
        ("dense", "convolution", 1),
        ("grouped", "grouped_convolution", 4),
        ("depthwise", "depthwise_convolution", 32),
    ):
        forward, backward = [row for row in rows[name] if row["kind"] == kind]
        assert forward["flops"] == 2 * 2 * 16 * 16 * 32 * (32 // groups) * 9
        assert backward["flops"] == 2 * forward["flops"], "one such product for each of two gradients"
        assert forward["shape"] == [groups, 2 * 16 * 16, 32 // groups, 32 // groups * 9]
        assert forward["dtype"] == "tf32", "cuDNN uses it unless it is told not to"
        assert not forward["channels_last"]
    assert one(rows["channels_last"], "convolution")["channels_last"]


def measured(name: str, **asked: Any) -> tuple[Measurement, Measurement]:
    """A sample measured plainly, and once more as asked, on a null A100."""
    specs = device_specs(hardware.find("a100-40"))
    build = nullgpu.torch_build()
    assert build is not None
    request = Request(
        target=str(SAMPLES / f"{name}.py"), null_gpu=nullgpu.configuration(specs, build, limited=False), batch_size=2
    )
    environment = nullgpu.environment(specs, limited=False, base=worker_environment())
    with Worker(environment, null=True, listener=lambda _: None) as worker:
        return worker.measure(request), worker.measure(replace(request, **asked))


def total(rows: tuple[Operation, ...], kind: str) -> int:
    """Floating-point operations of one kind."""
    return sum(row.count * row.flops for row in rows if row.kind == kind)


def test_a_recorded_step_leaves_the_figures_alone() -> None:
    """Operations come from a step of their own: asking for them must not change what is reported."""
    plain, recorded = measured("gpt2", operations=True)
    assert replace(recorded, operations=()) == plain
    rows = recorded.operations
    width, layers, tokens, vocabulary = 768, 12, 2 * 1024, 50257
    assert total(rows, "matmul") == 3 * 2 * tokens * width * (layers * 12 * width + vocabulary)
    forward = layers * 4 * tokens * 1024 * width // 2
    assert total(rows, "attention") == forward + forward * 5 // 2, "five products after two"
    assert {row.phase for row in rows} >= {"forward", "loss", "backward", "optimizer"}
    assert len(rows) < 150, "like calls are one row"


def test_one_micro_batch_stands_for_all() -> None:
    """Two halves of a batch are as much arithmetic as the whole, and their gradients are added once more."""
    whole, halves = measured("gpt2", operations=True, measures=(Choice(name="micro_batch", options={"parts": 2}),))
    assert whole.operations == ()
    width, layers, tokens, vocabulary = 768, 12, 2 * 1024, 50257
    assert total(halves.operations, "matmul") == 3 * 2 * tokens * width * (layers * 12 * width + vocabulary)
    forward = [row for row in halves.operations if row.phase == "forward" and row.kind == "attention"]
    assert sum(row.count for row in forward) == 2 * layers


COMPILED = """
import dataclasses
import os
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # a pool of compilers takes longer to start than one kernel
import torch
from vramdoc.worker.operations import OperationRecorder

shifted = torch.compile(lambda x: (x.sin() + 1) * 2)
values = torch.zeros(1024, 1024, device="cuda")
shifted(values)
with OperationRecorder(lambda: "forward") as recorder:
    shifted(values)
emit([dataclasses.asdict(row) for row in recorder.operations()])
"""


def test_compiled_kernels_are_seen(on_null_gpu: Callable[..., Any]) -> None:
    """torch.compile's kernels pass the dispatcher by: their launcher says what they are given."""
    row = one(on_null_gpu(COMPILED), "compiled")
    assert (row["bytes"], row["launches"], row["dtype"]) == (2 * 4 * 1024 * 1024, 1, "fp32")

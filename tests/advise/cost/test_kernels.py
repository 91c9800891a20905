"""The time of single operations, held to published kernels and to what must be so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vramdoc import hardware
from vramdoc.advise.cost.efficiencies import calibrated
from vramdoc.advise.cost.kernels import kernel_seconds
from vramdoc.report.operations import Operation

A100, H100, V100 = (hardware.find(name) for name in ("a100-80", "h100", "v100-16"))


def seconds(gpu: hardware.Gpu = A100, **fields: Any) -> float:
    """One call of an operation on ``gpu``."""
    row = {"op": "aten.mm", "phase": "forward", "kind": "matmul", "dtype": "bf16", "count": 1, "launches": 1.0}
    return kernel_seconds(Operation(**{**row, "flops": 0, "bytes": 0, **fields}), gpu, calibrated())


def product(rows: int, columns: int, depth: int, gpu: hardware.Gpu = A100, **fields: Any) -> float:
    """Operations a second of a matrix product, as a share of the dense bf16 peak."""
    flops = 2 * rows * columns * depth
    size = 2 * (rows * depth + depth * columns + rows * columns)
    taken = seconds(gpu, flops=flops, bytes=size, shape=(1, rows, columns, depth), **fields)
    return flops / taken / gpu.peak_flops["bf16"]


def test_large_products_reach_what_was_measured() -> None:
    """The shares are those of public sweeps: 0.87 of the peak on an A100, 0.80 on an H100, never above."""
    assert product(16384, 8192, 8192) == pytest.approx(0.869, rel=0.03)
    assert product(16384, 8192, 8192, H100) == pytest.approx(0.803, rel=0.03)


def test_a_published_feed_forward() -> None:
    """Three products of 32768 tokens, 4096 to 11008 and back, with SwiGLU between: 36.3 ms on an A100."""
    tokens, width, inner = 32768, 4096, 11008
    one = {"flops": 2 * tokens * width * inner, "bytes": 2 * (tokens * (width + inner) + width * inner)}
    products = 2 * seconds(shape=(1, tokens, inner, width), **one) + seconds(shape=(1, tokens, width, inner), **one)
    between = seconds(kind="elementwise", bytes=2 * 2 * tokens * inner) + seconds(
        kind="elementwise", bytes=3 * 2 * tokens * inner
    )
    assert products + between == pytest.approx(36.3e-3, rel=0.1)


def test_layer_norm_as_published() -> None:
    """torch's layer norm of 4096 x 16384 in fp32 moves its bytes at half of the bandwidth: 0.507 ms on an A100."""
    size = 2 * 4 * 4096 * 16384
    assert seconds(kind="normalisation", dtype="fp32", bytes=size) == pytest.approx(0.507e-3, rel=0.15)
    assert seconds(H100, kind="normalisation", dtype="fp32", bytes=size) == pytest.approx(0.307e-3, rel=0.15)


def test_small_and_crooked_products_reach_less() -> None:
    """A product that fills no wave, or whose rows are not aligned, is slower for its arithmetic."""
    large = product(8192, 8192, 4096)
    assert product(256, 256, 256) < 0.1 * large
    assert product(8192, 8192, 64) < large
    assert product(8192, 50257, 768) < 0.7 * product(8192, 50304, 768), "why vocabularies are padded"


def test_data_types_by_what_the_gpu_has() -> None:
    """TF32 lies between fp32 and bf16 on an A100; a V100 has neither TF32 nor bf16 and computes both in fp32."""
    same = {"flops": 2 * 4096**3, "bytes": 0, "shape": (1, 4096, 4096, 4096)}
    assert seconds(dtype="bf16", **same) < seconds(dtype="tf32", **same) < seconds(dtype="fp32", **same)
    assert seconds(V100, dtype="fp16", **same) < 0.3 * seconds(V100, dtype="fp32", **same)
    assert seconds(V100, dtype="bf16", **same) == pytest.approx(seconds(V100, dtype="fp32", **same))


def test_convolutions_by_layout_and_groups() -> None:
    """Channels last saves the copies around a dense convolution, and slows a grouped one; depthwise is all memory."""
    shape = (1, 64 * 56 * 56, 128, 128 * 9)
    dense = {
        **{"kind": "convolution", "dtype": "fp16", "shape": shape},
        **{"flops": 2 * shape[1] * shape[2] * shape[3], "bytes": 2 * 2 * 64 * 128 * 56 * 56},
    }
    assert seconds(**dense, channels_last=True) < seconds(**dense)
    grouped = {**dense, "kind": "grouped_convolution", "flops": dense["flops"] // 4}
    assert seconds(**grouped, channels_last=True) > seconds(**grouped)
    depthwise = {**dense, "kind": "depthwise_convolution", "flops": dense["flops"] // 128}
    bandwidth = dense["bytes"] / A100.memory_bandwidth
    assert 1.5 * bandwidth < seconds(**depthwise) < 10 * bandwidth


def test_launches_and_views() -> None:
    """A kernel of no size still takes its launch; a view takes the GPU nothing."""
    assert seconds(kind="elementwise", launches=10.0) == pytest.approx(10 * calibrated().launch["kernel_seconds"])
    assert seconds(kind="view", launches=0.0) == 0


def test_the_cache_helps_small_data() -> None:
    """Bytes that fit the second-level cache come faster, so that twice the bytes take more than twice the time."""
    once = seconds(kind="elementwise", bytes=16 * 2**20, launches=0.0)
    assert seconds(kind="elementwise", bytes=32 * 2**20, launches=0.0) > 2 * once
    no_cache = replace(A100, l2_bytes=None)
    assert seconds(no_cache, kind="elementwise", bytes=16 * 2**20, launches=0.0) > once

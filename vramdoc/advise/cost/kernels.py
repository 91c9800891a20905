"""The time of one operation on a GPU: its arithmetic or its bytes, whichever takes longer, and its launches."""

from __future__ import annotations

import math

from vramdoc.advise.cost.efficiencies import Efficiencies
from vramdoc.hardware import Gpu
from vramdoc.report.operations import Operation

_HALF = ("fp16", "bf16")
_TENSOR_CORE_TYPES = (*_HALF, "tf32", "fp8", "int8")
_ALIGNMENT = 8  # elements: 16 bytes of a 16-bit type
_PRODUCTS = ("matmul", "convolution", "grouped_convolution", "recurrent")
_CONVOLUTIONS = ("convolution", "grouped_convolution", "depthwise_convolution")


def kernel_seconds(operation: Operation, gpu: Gpu, efficiencies: Efficiencies) -> float:
    """Seconds of one call on an idle ``gpu``."""
    if operation.kind in ("view", "host", "host_copy"):
        return 0.0
    share = _share_of_peak(operation, gpu, efficiencies)
    arithmetic = operation.flops / (share * _peak(operation.dtype, gpu)) if operation.flops else 0.0
    rate = _share_of_bandwidth(operation, efficiencies) * gpu.memory_bandwidth
    rate *= 1.0 + efficiencies.memory["cached"] * _in_cache(operation, gpu)
    launching = operation.launches * efficiencies.launch["kernel_seconds"]
    return launching + max(arithmetic, operation.bytes / rate) + _layout_seconds(operation, gpu, efficiencies)


def _in_cache(operation: Operation, gpu: Gpu) -> float:
    """Share of an operation's bytes that the operation before may have left in the second-level cache."""
    cache = gpu.l2_bytes or 0
    return cache / (cache + operation.bytes) if operation.bytes else 0.0


def _peak(dtype: str, gpu: Gpu) -> int:
    """Operations a second; a type that the GPU does not have is computed in the next wider one, fp64 as if in fp32."""
    wider = {"fp8": "bf16", "bf16": "fp32", "fp16": "fp32", "tf32": "fp32", "int8": "fp16"}
    while dtype not in gpu.peak_flops:
        dtype = wider.get(dtype, "fp32")
    return gpu.peak_flops[dtype]


def uses_tensor_cores(operation: Operation, gpu: Gpu) -> bool:
    """Whether its products run on tensor cores there."""
    return operation.dtype in _TENSOR_CORE_TYPES and operation.dtype in gpu.peak_flops


def _share_of_peak(operation: Operation, gpu: Gpu, efficiencies: Efficiencies) -> float:
    tensor_cores = uses_tensor_cores(operation, gpu)
    convolutions = efficiencies.convolutions
    if operation.kind == "grouped_convolution" and tensor_cores:
        return convolutions["grouped_last" if operation.channels_last else "grouped_first"]
    if tensor_cores:
        known = efficiencies.tensor_cores
        share = known["halved"] if gpu.family == "consumer" else known.get(gpu.architecture, min(known.values()))
        if operation.dtype == "tf32" and operation.kind not in _CONVOLUTIONS:
            share *= efficiencies.products["tf32"]
    else:
        share = efficiencies.products["fp32"]
    if operation.kind == "attention":
        flash = "flash" in operation.op or "cudnn" in operation.op
        return share * efficiencies.attention["flash" if flash else "efficient"]
    if operation.kind in _CONVOLUTIONS and tensor_cores:
        share *= convolutions["dense_tf32" if operation.dtype == "tf32" else "dense"]
    elif operation.kind in _CONVOLUTIONS:
        share *= convolutions["dense_fp32"]
    return share * _fill(operation, gpu, efficiencies, tensor_cores=tensor_cores)


def _fill(operation: Operation, gpu: Gpu, efficiencies: Efficiencies, *, tensor_cores: bool) -> float:
    """How well a product of this size fills the GPU: whole tiles, whole waves of blocks, a deep inner loop."""
    if len(operation.shape) != 4 or not all(operation.shape):
        return 1.0
    batch, rows, columns, depth = operation.shape
    products = efficiencies.products
    tile = float(products["tile"])
    tiles_down, tiles_across = rows / tile, columns / tile
    padding = _whole(tiles_down) * _whole(tiles_across)
    blocks: float = batch * math.ceil(tiles_down) * math.ceil(tiles_across)
    # A result too small for all multiprocessors is split along the inner dimension.
    blocks *= max(1.0, min(gpu.multiprocessors / blocks, depth / (4 * tile)))
    waves = blocks / gpu.multiprocessors
    fill = padding * waves / (waves + products["wave_loss"])
    fill *= depth / (depth + products["half_depth"])
    aligned = all(size % _ALIGNMENT == 0 for size in (rows, columns, depth))
    return fill if aligned or not tensor_cores or operation.kind != "matmul" else fill * products["unaligned"]


def _whole(tiles: float) -> float:
    """Share of the last tile's work that is wanted. Libraries have tiles of half and a quarter of the size too."""
    quarters = math.ceil(tiles * 4) / 4
    return tiles / quarters


def _layout_seconds(operation: Operation, gpu: Gpu, efficiencies: Efficiencies) -> float:
    """Copies around a convolution: tensor cores want channels last, and cuDNN brings other data into that order."""
    if operation.kind != "convolution" or operation.channels_last or not uses_tensor_cores(operation, gpu):
        return 0.0
    rate = efficiencies.memory["elementwise"] * gpu.memory_bandwidth
    return efficiencies.convolutions["layout_passes"] * operation.bytes / rate


def _share_of_bandwidth(operation: Operation, efficiencies: Efficiencies) -> float:
    if operation.kind == "depthwise_convolution":
        return efficiencies.convolutions["depthwise"]
    return efficiencies.memory.get(operation.kind, efficiencies.memory["elementwise"])

"""What one call of an operator is to the GPU: its kind, its arithmetic, its size as a matrix product."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils.flop_counter import flop_registry

from vramdoc.report.operations import OperationKind

_MATMULS = {"mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_int_mm", "linear", "matmul", "addmv", "mv", "_grouped_mm"}
_REDUCTIONS = {
    *("sum", "mean", "amax", "amin", "max", "min", "argmax", "any", "all", "var", "var_mean", "std", "norm", "prod"),
    *("logsumexp", "linalg_vector_norm", "cumsum", "_softmax", "_softmax_backward_data"),
    *("_log_softmax", "_log_softmax_backward_data", "nll_loss_forward", "nll_loss_backward"),
    *("nll_loss2d_forward", "nll_loss2d_backward", "avg_pool2d", "avg_pool2d_backward"),
    *("max_pool2d_with_indices", "max_pool2d_with_indices_backward"),
    *("_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "upsample_nearest2d", "upsample_bilinear2d"),
}
_NORMALISATIONS = {
    *("native_batch_norm", "cudnn_batch_norm", "native_layer_norm", "native_group_norm", "_fused_rms_norm"),
    *("_native_batch_norm_legit", "_batch_norm_with_update", "batch_norm_backward"),
}
_INDEX_MARKS = ("embedding", "index", "gather", "scatter", "masked_select", "nonzero", "_unsafe_index", "take")
_MEMORY_COPIES = ("copy_", "clone", "_to_copy", "zero_", "zeros", "zeros_like", "new_zeros", "cat")
_SORTS = ("sort", "topk", "argsort", "unique", "_unique2", "kthvalue", "multinomial", "randperm")
_RECURRENT = ("_cudnn_rnn", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell")
_TENSOR_CORE_KINDS = ("matmul", "convolution", "grouped_convolution", "depthwise_convolution", "recurrent")
_NAMES = {
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float64: "fp64",
    torch.float8_e4m3fn: "fp8",
    torch.float8_e5m2: "fp8",
}

Arguments = tuple[Any, ...]


def kind_of(func: OpOverload, args: Arguments) -> OperationKind:
    """The kind of a call that launches something."""
    name = func.overloadpacket.__name__
    plain = name.removesuffix("_backward")
    if name in _MATMULS:
        return "matmul"
    if "convolution" in name:
        return _convolution_kind(func, args)
    if "attention" in name:
        return "attention"
    if name.startswith(("_foreach_", "_fused_ad", "_fused_sgd", "_amp_")):
        return "optimizer"
    if name.startswith(_RECURRENT):
        return "recurrent"
    if plain in _NORMALISATIONS or name in _NORMALISATIONS:
        return "normalisation"
    if name in _REDUCTIONS:
        return "reduction"
    if name.startswith(_SORTS):
        return "sort"
    return "index" if name.startswith(_INDEX_MARKS) else "elementwise"


def copies_memory(func: OpOverload) -> bool:
    """Whether it may be done by a copy or a fill of memory, which is no launch of a kernel."""
    return func.overloadpacket.__name__ in _MEMORY_COPIES


def dtype_of(kind: OperationKind, tensors: list[Tensor], outputs: list[Tensor]) -> str:
    """The data type that a call computes in, by the names of :data:`vramdoc.hardware.DTYPES` where it is one."""
    every = [*tensors, *outputs]
    chosen = next((tensor for tensor in every if tensor.is_floating_point()), every[0])
    name = _NAMES.get(chosen.dtype, str(chosen.dtype).removeprefix("torch."))
    if name == "fp32" and kind in _TENSOR_CORE_KINDS and _tf32(kind):
        return "tf32"
    return name


def _tf32(kind: OperationKind) -> bool:
    """Whether fp32 products of this kind run in TF32: the GPU has it and the program has not switched it off."""
    if torch.cuda.get_device_capability() < (8, 0):
        return False
    backends: Any = torch.backends  # its modules make their attributes while they run
    if kind == "matmul":
        precision = backends.cuda.matmul.fp32_precision
    else:
        precision = (backends.cudnn.rnn if kind == "recurrent" else backends.cudnn.conv).fp32_precision
    return str(precision) == "tf32"


def _convolution_kind(func: OpOverload, args: Arguments) -> OperationKind:
    """Dense, grouped or depthwise, from the groups and from how many channels each has."""
    backward = "backward" in func.overloadpacket.__name__
    weight, groups = (args[2], args[9]) if backward else (args[1], args[8] if len(args) > 8 else 1)
    if groups == 1:
        return "convolution"
    return "depthwise_convolution" if weight.shape[1] == 1 else "grouped_convolution"


def flops_of(func: OpOverload, kind: OperationKind, args: Arguments, kwargs: Mapping[str, Any], result: Any) -> int:
    """Floating-point operations of a call by torch's own formulas; 0 where it has none.

    Three cases differ from them. Gradients of a convolution: torch's formula takes no heed of groups, so the
    forward formula is taken once for each gradient. A causal mask: fused attention skips what it hides. cuDNN's
    recurrent nets have no formula: two operations for each weight and each row.
    """
    if kind == "recurrent":
        return _recurrent_flops(func, args)
    if "convolution_backward" in func.overloadpacket.__name__:
        gradient, _, weight = args[:3]
        wanted = sum(bool(flag) for flag in args[10][:2])
        spatial = args[1].shape[2:] if args[7] else gradient.shape[2:]
        return 2 * wanted * int(gradient.shape[0] * math.prod(spatial) * weight.numel())
    formula = flop_registry.get(func.overloadpacket)
    if formula is None:
        return 0
    flops = int(formula(*args, **kwargs, out_val=result))
    return flops // 2 if kind == "attention" and _is_causal(func, args, kwargs) else flops


def _is_causal(func: OpOverload, args: Arguments, kwargs: Mapping[str, Any]) -> bool:
    for position, argument in enumerate(func._schema.arguments):
        if argument.name == "is_causal":
            return bool(kwargs.get("is_causal", args[position] if position < len(args) else False))
    return False


def _recurrent_flops(func: OpOverload, args: Arguments) -> int:
    rows = math.prod(args[0].shape[:2]) if args[0].dim() == 3 else args[0].shape[0]
    weights = sum(w.numel() for w in args[1] if isinstance(w, Tensor) and w.dim() == 2)
    factor = 2 if "backward" in func.overloadpacket.__name__ else 1
    return 2 * factor * int(rows) * weights


def shape_of(func: OpOverload, kind: OperationKind, args: Arguments) -> tuple[int, ...]:
    """Batch, m, n, k of a product, of a convolution as a product; batch, heads, queries, keys, width of attention."""
    if kind == "matmul":
        left, right = [a for a in args if isinstance(a, Tensor) and a.dim() >= 2][-2:]
        batch = left.shape[0] if left.dim() == 3 else 1
        return (batch, left.shape[-2], right.shape[-1], left.shape[-1])
    if "convolution" in kind:
        return _convolution_shape(func, args)
    if kind == "attention":
        tensors = [a for a in args if isinstance(a, Tensor) and a.dim() == 4]
        query, key = tensors[1:3] if "backward" in func.overloadpacket.__name__ else tensors[:2]
        return (*query.shape[:3], key.shape[2], query.shape[3])
    return ()


def _convolution_shape(func: OpOverload, args: Arguments) -> tuple[int, ...]:
    """A convolution as a product of (images x positions) by (filters): one for each group."""
    if "backward" in func.overloadpacket.__name__:
        gradient, source, weight, transposed, groups = args[0], args[1], args[2], args[7], args[9]
        spatial = source.shape[2:] if transposed else gradient.shape[2:]
    else:
        source, weight, groups = args[0], args[1], args[8]
        spatial = source.shape[2:] if args[6] else _output_size(source, weight, *args[3:6])
    rows = source.shape[0] * math.prod(spatial)
    return (groups, rows, weight.shape[0] // groups, weight[0].numel())


def _output_size(source: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any) -> list[int]:
    sizes = zip(source.shape[2:], weight.shape[2:], strict=True)
    at = [_of_axis(values) for values in (stride, padding, dilation)]
    return [
        (size + 2 * at[1](axis) - at[2](axis) * (width - 1) - 1) // at[0](axis) + 1
        for axis, (size, width) in enumerate(sizes)
    ]


def _of_axis(values: Any) -> Any:
    return lambda axis: values[axis] if len(values) > 1 else values[0]


def is_channels_last(args: Arguments) -> bool:
    """Whether an image tensor among the arguments lies channels last."""
    for value in args:
        if isinstance(value, Tensor) and value.dim() in (4, 5):
            layout = torch.channels_last if value.dim() == 4 else torch.channels_last_3d
            return value.shape[1] > 1 and value.is_contiguous(memory_format=layout)
    return False

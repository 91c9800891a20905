"""What one whole training step asks of the GPU: its operations, its copies to and from the host, its collectives.

Rows, not single calls: like calls are one row with a count, so that the step of an 8B model is small JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OperationKind = Literal[
    "matmul",
    "attention",  # fused: scaled_dot_product_attention's own kernels
    "convolution",
    "grouped_convolution",  # more than one group, several channels each
    "depthwise_convolution",  # one channel a group
    "recurrent",  # cuDNN's LSTM and its like: a chain of small products
    "elementwise",  # also copies and casts on the device
    "reduction",  # sums, norms, softmax, losses
    "normalisation",  # batch, layer, group and RMS norm as one operation
    "index",  # embedding, gather, scatter
    "sort",  # also top-k and unique
    "optimizer",  # foreach and fused operations over lists of tensors
    "host_copy",  # between host and GPU
    "compiled",  # a kernel that torch.compile or the user wrote: what it is given counts as read and written once
    "host",  # computed on the host: an optimizer whose states lie there
    "view",  # launches nothing: views, and memory left unwritten; only the host's time
]
"""What decides how near an operation comes to the peak of its GPU."""

CollectiveOp = Literal["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Like calls of one operator: same phase, data type, sizes."""

    op: str  # "aten.mm"; for a host copy "to_gpu" or "to_host"; for compiled code its kernel or ""
    phase: str  # "forward", "loss", "backward", "optimizer", "after_step"
    kind: OperationKind
    dtype: str  # that it computes in: one of hardware.DTYPES, or "fp64", "int64", ...; "tf32" only where it is on
    count: int  # calls
    flops: int  # floating-point operations of one call; 0 where its time is that of its bytes
    bytes: int  # read and written by one call
    launches: float  # kernels of one call, on average
    shape: tuple[int, ...] = ()  # matmul, convolution as matmul: batch, m, n, k; attention: batch, heads, q, kv, width
    channels_last: bool = False  # convolution: in that layout
    overlapped: bool = False  # issued on another stream than the computation, so that it may run beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """Like collectives of one rank: same group, phase, data type, size."""

    op: CollectiveOp
    phase: str  # as in Operation
    dtype: str  # of what travels
    count: int  # calls
    bytes: int  # of one call's whole buffer: what all ranks together gather or reduce, not one rank's shard of it
    group_size: int  # ranks that take part
    group_span: int = 1  # machines that they lie on
    overlapped: bool = True  # issued beside the computation (FSDP's and DDP's own), not waited for at once

"""What is known of one GPU and of one link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Family = Literal["datacenter", "workstation", "consumer"]
DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
"""The data types that a peak is given for, in the order of the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A way for bytes to leave a GPU or a machine."""

    name: str  # "pcie-4-x16", "nvlink-3-x12", "infiniband-ndr"
    bytes_per_second: int  # one direction
    source: str  # where the rate is from


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU. Sizes in bytes; None, or a missing key, where a figure is not known."""

    name: str  # as CUDA reports it: "NVIDIA A100-SXM4-40GB"
    short_name: str  # "a100-40"
    aliases: tuple[str, ...]  # other names it is found by
    family: Family
    architecture: str  # "Ampere"
    memory_gb: int  # as sold
    compute_capability: tuple[int, int]
    multiprocessors: int
    total_bytes: int  # as CUDA reports it
    total_is_exact: bool  # False: from a total that was printed rounded to MiB or to a hundredth of a GiB
    context_bytes: int | None  # used outside the allocator once a training step has run
    shared_memory_per_block: int  # the opt-in maximum
    shared_memory_per_multiprocessor: int
    l2_bytes: int | None
    memory_bandwidth: int  # bytes a second
    peak_flops: Mapping[str, int]  # of DTYPES, dense, operations a second; 16-bit products summed in fp32
    host_link: Link  # to the host: PCIe, or NVLink-C2C
    peer_link: Link | None  # NVLink to other GPUs, all links together; None where the GPU has none
    sources: Mapping[str, str]  # by field name, one for every figure that is known

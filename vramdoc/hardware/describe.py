"""A GPU as plain values, for ``vramdoc gpus --json``."""

from __future__ import annotations

from typing import Any

from vramdoc.hardware.model import Gpu, Link


def describe(gpu: Gpu) -> dict[str, Any]:
    """Every figure of ``gpu`` and its source, as what JSON can hold; None where a figure is not known."""
    return {
        "name": gpu.name,
        "short_name": gpu.short_name,
        "aliases": list(gpu.aliases),
        "family": gpu.family,
        "architecture": gpu.architecture,
        "memory_gb": gpu.memory_gb,
        "compute_capability": "{}.{}".format(*gpu.compute_capability),
        "multiprocessors": gpu.multiprocessors,
        "total_bytes": gpu.total_bytes,
        "total_is_exact": gpu.total_is_exact,
        "context_bytes": gpu.context_bytes,
        "shared_memory_per_block": gpu.shared_memory_per_block,
        "shared_memory_per_multiprocessor": gpu.shared_memory_per_multiprocessor,
        "l2_bytes": gpu.l2_bytes,
        "memory_bandwidth": gpu.memory_bandwidth,
        "peak_flops": dict(gpu.peak_flops),
        "host_link": _link(gpu.host_link),
        "peer_link": _link(gpu.peer_link) if gpu.peer_link else None,
        "sources": dict(gpu.sources),
    }


def _link(link: Link) -> dict[str, Any]:
    return {"name": link.name, "bytes_per_second": link.bytes_per_second, "source": link.source}

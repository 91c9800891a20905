"""The GPU tables: complete, sourced, and in agreement with what is known of the hardware."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from vramdoc.hardware import (
    DTYPES,
    ESTIMATED_CONTEXT_BYTES,
    Gpu,
    all_gpus,
    all_links,
    context_or_estimate,
    describe,
    find,
)
from vramdoc.units import GIB

SOURCED = {
    "compute_capability", "multiprocessors", "total_bytes", "context_bytes", "shared_memory_per_block",
    "shared_memory_per_multiprocessor", "l2_bytes", "memory_bandwidth", "peak_flops", "host_link", "peer_link",
}  # fmt: skip


def test_the_range_is_covered() -> None:
    """At least 45 GPUs of three families, from the GTX 1080 Ti to the B300."""
    gpus = all_gpus()
    assert len(gpus) >= 45
    assert {gpu.family for gpu in gpus} == {"datacenter", "workstation", "consumer"}
    assert {"1080-ti", "b300"} <= {gpu.short_name for gpu in gpus}


@pytest.mark.parametrize("gpu", all_gpus(), ids=lambda gpu: gpu.short_name)
def test_every_known_figure_has_a_source_and_no_unknown_one_has(gpu: Gpu) -> None:
    """A figure without a source is a guess; a source without a figure is a slip in the table."""
    known = {name for name in SOURCED if getattr(gpu, name) is not None}
    assert set(gpu.sources) == known
    assert all(gpu.sources.values())


@pytest.mark.parametrize("gpu", all_gpus(), ids=lambda gpu: gpu.short_name)
def test_figures_are_plausible(gpu: Gpu) -> None:
    """Catches a wrong unit or a slipped digit in the tables."""
    assert 0.88 * gpu.memory_gb * 10**9 <= gpu.total_bytes <= gpu.memory_gb * GIB
    assert gpu.shared_memory_per_block <= gpu.shared_memory_per_multiprocessor
    assert 18 <= gpu.multiprocessors <= 188
    assert gpu.l2_bytes is None or 1.5 * 2**20 <= gpu.l2_bytes <= 128 * 2**20
    assert 150e9 <= gpu.memory_bandwidth <= 8e12
    assert gpu.host_link.name.startswith("pcie") or gpu.host_link.name == "nvlink-c2c"
    assert gpu.peer_link is None or gpu.peer_link.name.startswith("nvlink")


@pytest.mark.parametrize("gpu", all_gpus(), ids=lambda gpu: gpu.short_name)
def test_peaks_follow_the_architecture(gpu: Gpu) -> None:
    """A data type exists from its architecture on, and a narrower type is never slower."""
    first = {"tf32": (8, 0), "bf16": (8, 0), "fp8": (8, 9), "fp4": (10, 0)}
    assert list(gpu.peak_flops) == [dtype for dtype in DTYPES if dtype in gpu.peak_flops]
    assert "fp32" in gpu.peak_flops
    assert all(gpu.compute_capability >= first.get(dtype, (0, 0)) for dtype in gpu.peak_flops)
    assert gpu.peak_flops.get("bf16", 0) in (0, gpu.peak_flops.get("fp16"))
    chain = [gpu.peak_flops[d] for d in ("fp32", "tf32", "fp16", "fp8", "fp4") if d in gpu.peak_flops]
    assert chain == sorted(chain)


@pytest.mark.parametrize(
    ("name", "dtype", "tflops"),
    [("3090", "fp16", 71), ("4090", "fp16", 165.2), ("4090", "fp8", 330.3), ("5090", "fp16", 209.5),
     ("a6000", "bf16", 154.8), ("6000-ada", "fp8", 728.5), ("a100", "tf32", 156), ("h100", "fp8", 1979),
     ("rtx-8000", "fp16", 130.5), ("titan-v", "fp16", 119.2)],
)  # fmt: skip
def test_peaks_worked_out_from_clocks_agree_with_the_data_sheets(name: str, dtype: str, tflops: float) -> None:
    """The formula must give the published dense rates with fp32 accumulation, not the sparse or fp16 ones."""
    assert find(name).peak_flops[dtype] == pytest.approx(tflops * 1e12, rel=5e-3)


def test_the_measured_a6000() -> None:
    """The GPU of the published runs that the tests reproduce: total, context and multiprocessors are exact."""
    gpu = find("a6000")
    assert (gpu.name, gpu.compute_capability, gpu.multiprocessors) == ("NVIDIA RTX A6000", (8, 6), 84)
    assert gpu.total_bytes == 51_033_931_776
    assert gpu.total_is_exact
    assert context_or_estimate(gpu) == (744_685_568, True)


@pytest.mark.parametrize(
    ("name", "printed_gib"),
    [("a100-40", "39.39"), ("b200", "178.35"), ("b300", "267.69"), ("gb200", "184.31"), ("h200", "139.80"),
     ("h20", "95.00"), ("l40s", "44.39"), ("l4", "22.03"), ("h100-nvl", "93.02"), ("a100-pcie-80", "79.25"),
     ("2080-ti", "10.75"), ("1080-ti", "10.91"), ("t4", "14.56"), ("5090", "31.36")],
)  # fmt: skip
def test_totals_print_as_in_public_out_of_memory_messages(name: str, printed_gib: str) -> None:
    """torch prints the total with two decimals; the table must give the same text."""
    assert f"{find(name).total_bytes / GIB:.2f}" == printed_gib


def test_an_unknown_context_is_estimated_and_says_so() -> None:
    """The estimate is kept apart from the tables, so that it is never taken for a measurement."""
    gpu = find("h100")
    assert gpu.context_bytes is None
    assert context_or_estimate(gpu) == (ESTIMATED_CONTEXT_BYTES, False)


def test_links_are_sourced_and_one_direction() -> None:
    """NVLink's advertised 900 GB/s of an H100 counts both directions, PCIe 4.0 x16 carries 31.5 GB/s each way."""
    links = {link.name: link for link in all_links()}
    assert all(link.source for link in links.values())
    assert links["nvlink-4-x18"].bytes_per_second == 450_000_000_000
    assert links["pcie-4-x16"].bytes_per_second == 31_507_692_307


def test_a_description_holds_every_field_as_json() -> None:
    """``vramdoc gpus --json`` shows all that the tables know."""
    for gpu in all_gpus():
        described = json.loads(json.dumps(describe(gpu)))
        assert set(described) == {field.name for field in fields(Gpu)}
        assert described["sources"] == dict(gpu.sources)

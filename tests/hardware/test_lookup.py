"""Names of GPUs as people write them."""

from __future__ import annotations

from collections import defaultdict

import pytest

from vramdoc.errors import UnknownGpuError, UsageError
from vramdoc.hardware import all_gpus, find, find_link


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a100-40", "NVIDIA A100-SXM4-40GB"),
        ("A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("a100", "NVIDIA A100-SXM4-80GB"),
        ("h100", "NVIDIA H100 80GB HBM3"),
        ("H100 PCIe", "NVIDIA H100 PCIe"),
        ("4090", "NVIDIA GeForce RTX 4090"),
        ("rtx4090", "NVIDIA GeForce RTX 4090"),
        ("GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("rtx_a6000", "NVIDIA RTX A6000"),
        ("NVIDIA Tesla T4", "Tesla T4"),
        ("NVIDIA GeForce RTX 4060 Ti", "NVIDIA GeForce RTX 4060 Ti"),
    ],
)
def test_spellings(written: str, name: str) -> None:
    """Short names, CUDA's own name, with and without brand, in any case and punctuation."""
    assert find(written).name == name


def test_one_cuda_name_with_two_sizes_stands_for_the_larger() -> None:
    """CUDA calls both sizes of the RTX 4060 Ti the same; the smaller keeps a short name of its own."""
    assert find("NVIDIA GeForce RTX 4060 Ti").memory_gb == 16
    assert find("4060-ti-8").memory_gb == 8


def test_no_alias_belongs_to_two_gpus() -> None:
    """An alias that two GPUs claim would silently stand for the first."""
    owners = defaultdict(set)
    for gpu in all_gpus():
        for alias in (gpu.short_name, *gpu.aliases):
            owners[alias.replace("-", "")].add((gpu.name, gpu.memory_gb))
            assert find(alias) is gpu
    assert {alias: names for alias, names in owners.items() if len(names) > 1} == {}


def test_cuda_names_are_unique_but_for_one() -> None:
    """A report names its GPU by CUDA's name, so that must lead back to the same row."""
    lost = {gpu.short_name for gpu in all_gpus() if find(gpu.name) is not gpu}
    assert lost == {"4060-ti-8"}


@pytest.mark.parametrize(("written", "nearest"), [("h10", "h100"), ("rtx 4091", "4090"), ("a6001", "a6000")])
def test_an_unknown_name_suggests_the_nearest(written: str, nearest: str) -> None:
    """The hint must name what was probably meant, and the listing."""
    with pytest.raises(UnknownGpuError, match=written) as caught:
        find(written)
    assert nearest in caught.value.hint.split("?")[0].replace(" or ", " ").split()
    assert "vramdoc gpus" in caught.value.hint


@pytest.mark.parametrize("written", ["", "nvidia", "geforce", "???", "mi300x"])
def test_a_name_like_nothing_only_points_at_the_listing(written: str) -> None:
    """A brand alone, or a name without a neighbour, is no GPU."""
    with pytest.raises(UnknownGpuError) as caught:
        find(written)
    assert "vramdoc gpus" in caught.value.hint


def test_links_are_found_by_name() -> None:
    """The cost model asks for links of machines by name; a wrong one says what there is."""
    assert find_link("PCIe-4 x16").bytes_per_second == 31_507_692_307
    with pytest.raises(UsageError) as caught:
        find_link("pcie-9-x16")
    assert "pcie-5-x16" in caught.value.hint

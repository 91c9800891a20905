"""Reads the data files, once, on first use."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast, get_args

from vramdoc.hardware.model import DTYPES, Family, Gpu, Link
from vramdoc.units import GIB, KIB, MIB

_DATA = Path(__file__).parent / "data"
_SPECIFICATION = ("multiprocessors", "l2_bytes", "memory_bandwidth", "peak_flops", "host_link", "peer_link")
"""The fields that a GPU's ``specification`` stands for, unless its ``sources`` name another."""
_PRINTED_UNITS = {"total_mib": MIB, "total_gib": GIB, "total_gb": 10**9}


@cache
def all_gpus() -> tuple[Gpu, ...]:
    """Every GPU of the tables: data-centre, workstation, consumer; within a family, newest first."""
    return tuple(_gpu(row, family) for family in get_args(Family) for row in _read(family)["gpu"])


@cache
def all_links() -> tuple[Link, ...]:
    """Every link of the tables."""
    table = _read("links")
    return tuple(
        Link(name=name, bytes_per_second=rate, source=table["sources"][name.partition("-")[0]])
        for name, rate in table["bytes_per_second"].items()
    )


@cache
def _links() -> dict[str, Link]:
    return {link.name: link for link in all_links()}


@cache
def _architectures() -> dict[str, dict[str, Any]]:
    """The rows of ``architectures.toml`` by compute capability."""
    return {row["compute_capability"]: row for row in _read("architectures")["architecture"]}


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_DATA / f"{name}.toml").read_text(encoding="utf-8"))


def _gpu(row: Mapping[str, Any], family: Family) -> Gpu:
    """One row of a family's table, with what follows from its compute capability."""
    architecture = _architectures()[row["compute_capability"]]
    major, minor = row["compute_capability"].split(".")
    return Gpu(
        name=row["name"],
        short_name=row["aliases"][0],
        aliases=tuple(row["aliases"][1:]),
        family=family,
        architecture=architecture["name"],
        memory_gb=row["memory_gb"],
        compute_capability=(int(major), int(minor)),
        multiprocessors=row["multiprocessors"],
        total_bytes=_total_bytes(row),
        total_is_exact="total_bytes" in row,
        context_bytes=row.get("context_bytes"),
        shared_memory_per_block=architecture["shared_memory_per_block"],
        shared_memory_per_multiprocessor=architecture["shared_memory_per_multiprocessor"],
        l2_bytes=row["l2_kib"] * KIB if "l2_kib" in row else None,
        memory_bandwidth=round(row["memory_bandwidth_gb"] * 10**9),
        peak_flops=MappingProxyType(_peak_flops(row, architecture, family)),
        host_link=_links()[row["host_link"]],
        peer_link=_links()[row["peer_link"]] if "peer_link" in row else None,
        sources=MappingProxyType(_sources(row)),
    )


def _total_bytes(row: Mapping[str, Any]) -> int:
    """The exact total where the table has it, otherwise the printed one in bytes, to the nearest MiB."""
    if "total_bytes" in row:
        return cast(int, row["total_bytes"])
    key, unit = next((key, unit) for key, unit in _PRINTED_UNITS.items() if key in row)
    printed: float = row[key]
    return round(printed * unit / MIB) * MIB


def _peak_flops(row: Mapping[str, Any], architecture: Mapping[str, Any], family: Family) -> dict[str, int]:
    """Peak by data type: as the table gives it, or operations x multiprocessors x boost clock."""
    if "peak_tflops" in row:
        return {dtype: round(row["peak_tflops"][dtype] * 10**12) for dtype in DTYPES if dtype in row["peak_tflops"]}
    halved = architecture["geforce_halved"] if family == "consumer" else ()
    clocks = row["multiprocessors"] * row["boost_mhz"] * 10**6
    operations = architecture["operations"]
    return {d: operations[d] * clocks // (2 if d in halved else 1) for d in DTYPES if d in operations}


def _sources(row: Mapping[str, Any]) -> dict[str, str]:
    """A source for every field that holds a figure, by the name of the field."""
    general = _read("architectures")["sources"]
    given = dict(row["sources"])
    specification = given.pop("specification")
    absent = {field for field, key in (("l2_bytes", "l2_kib"), ("peer_link", "peer_link")) if key not in row}
    sources = {field: specification for field in _SPECIFICATION if field not in absent}
    if "peak_tflops" not in row:
        sources["peak_flops"] = f"{specification}; {general['operations']}"
    sources["compute_capability"] = general["compute_capability"]
    sources["shared_memory_per_block"] = general["shared_memory"]
    sources["shared_memory_per_multiprocessor"] = general["shared_memory"]
    return sources | given

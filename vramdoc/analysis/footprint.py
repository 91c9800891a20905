"""What of a report is worth comparing with another: sizes by name, without what moves when nothing has changed.

A line is known by its file, function and code, not by its number; the layers of a stack count together.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from vramdoc.report import LineRow, ModuleRow, Report

_SITE_PACKAGES = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
LEAST_SHARE = 0.001
"""Of the allocated peak: what a source line must hold to be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """One run, comparable. Sizes in bytes."""

    target: str  # as the user gave it
    device: str  # as CUDA reports it
    batch_size: int
    torch: str  # its version
    totals: dict[str, int]  # allocated, reserved, device, growth (a step)
    categories: dict[str, int]  # at the peak; those that hold nothing are left out
    phases: dict[str, int]  # highest allocated within each
    modules: dict[str, int]  # at the peak, children included; "" is the model itself
    lines: dict[str, dict[str, int]]  # at the peak: "gpt2.py forward" -> code -> bytes


def footprint(report: Report) -> Footprint:
    """The comparable part of ``report``."""
    return Footprint(
        target=report.target,
        device=report.device.name,
        batch_size=report.batch_size,
        torch=report.versions.get("torch", ""),
        totals={
            "allocated": report.peak.allocated_bytes,
            "reserved": report.peak.reserved_bytes,
            "device": report.device_bytes,
            "growth": report.growth_bytes_per_step,
        },
        categories={name: size for name, size in report.categories.items() if size},
        phases={phase.name: phase.peak_bytes for phase in report.phases},
        modules=_modules(report.modules),
        lines=_lines(report, least=report.peak.allocated_bytes * LEAST_SHARE),
    )


def function_key(row: LineRow, target: str) -> str:
    """The key of the function that ``row`` is in, of a report on ``target``: the same on every machine."""
    return f"{_portable(row.file, target)} {row.function}"


def layer_names(modules: Iterable[ModuleRow]) -> dict[str, str]:
    """For each module's name the one it counts under: ``blocks.3.mlp`` under ``blocks.*.mlp``.

    A number becomes ``*`` where it names one of several siblings of one class that have children of their own, as the
    layers of a transformer do; the parts of an ``nn.Sequential`` of different classes keep theirs.
    """
    rows = list(modules)
    parents = {row.name.rpartition(".")[0] for row in rows if row.name}
    siblings: dict[str, list[ModuleRow]] = defaultdict(list)
    for row in rows:
        parent, _, last = row.name.rpartition(".")
        if last.isdecimal() and row.name in parents:
            siblings[parent].append(row)
    stacks = {
        parent for parent, group in siblings.items() if len(group) > 1 and len({row.class_name for row in group}) == 1
    }
    layers = {row.name for parent in stacks for row in siblings[parent]}
    return {row.name: _starred(row.name, layers) for row in rows}


def _starred(name: str, layers: set[str]) -> str:
    parts = name.split(".")
    return ".".join("*" if ".".join(parts[: index + 1]) in layers else part for index, part in enumerate(parts))


def _modules(rows: tuple[ModuleRow, ...]) -> dict[str, int]:
    names = layer_names(rows)
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[names[row.name]] += row.total_bytes
    return dict(sizes)


def _portable(file: str, target: str) -> str:
    """``file`` from its package on, or from the target's folder; as it is where it has nothing to do with either."""
    if not PurePath(file).is_absolute():
        return PurePath(file).as_posix()
    packaged = _SITE_PACKAGES.sub("", file)
    folder = Path(target).resolve().parent
    if packaged != file or os.path.commonpath([file, folder]) == folder.anchor:
        return PurePath(packaged).as_posix()
    return PurePath(os.path.relpath(file, folder)).as_posix()


def _lines(report: Report, *, least: float) -> dict[str, dict[str, int]]:
    sizes: dict[str, Counter[str]] = defaultdict(Counter)
    for row in report.lines:
        sizes[function_key(row, report.target)][row.code] += row.bytes
    kept = {key: {code: size for code, size in codes.items() if size >= least} for key, codes in sizes.items()}
    return {key: codes for key, codes in kept.items() if codes}

"""The published pairs with the recorded operations of both sides, and how the time model answers for them."""

from __future__ import annotations

import gzip
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from vramdoc import hardware
from vramdoc.advise.cost import Interval, TimeEstimate, ratio, step_seconds
from vramdoc.advise.cost.efficiencies import Efficiencies
from vramdoc.report.operations import Collective, Operation

DATA = Path(__file__).resolve().parents[2] / "data"
COLUMNS = ("op", "phase", "kind", "dtype", "count", "flops", "bytes", "launches", "shape", "channels_last")
"""The fields of a recorded row, in the order of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a pair."""

    gpu: str
    operations: tuple[Operation, ...]
    collectives: tuple[Collective, ...]
    accumulate: int  # micro-batches: all but the optimizer runs so often
    samples: float  # units that a step makes
    link: str
    node_link: str
    machine_links: int  # of these, one machine has so many

    def estimate(self, efficiencies: Efficiencies | None = None) -> TimeEstimate:
        """The modelled time of a step."""
        operations = self.operations
        if self.accumulate > 1:
            operations = tuple(
                o if o.phase == "optimizer" else replace(o, count=o.count * self.accumulate) for o in operations
            )
        node_link = hardware.find_link(self.node_link)
        return step_seconds(
            operations,
            self.collectives,
            find_gpu(self.gpu),
            link=hardware.find_link(self.link) if self.link else None,
            node_link=replace(node_link, bytes_per_second=node_link.bytes_per_second * self.machine_links),
            efficiencies=efficiencies,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A published pair: ``speedup`` is throughput after over before."""

    name: str
    kind: str
    model: str
    speedup: float
    before: Side
    after: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the model says of a pair, as time for one sample after over before, beside what was measured."""

    pair: Pair
    modelled: Interval
    measured: float

    @property
    def error(self) -> float:
        """By what share the modelled ratio is off."""
        return self.modelled.value / self.measured - 1

    @property
    def held(self) -> bool:
        """Whether the interval has the measured ratio in it."""
        return self.modelled.low <= self.measured <= self.modelled.high


@cache
def load() -> tuple[Pair, ...]:
    """Every recorded pair."""
    published = {pair["pair"]: pair for pair in json.loads((DATA / "timings.json").read_text())["pairs"]}
    recorded = json.loads(gzip.decompress((DATA / "timings_operations.json.gz").read_bytes()))
    runs = {key: tuple(_row(row) for row in run["rows"]) for key, run in recorded["runs"].items()}
    return tuple(
        Pair(
            name=name,
            kind=published[name]["kind"],
            model=published[name]["model"],
            speedup=published[name]["speedup_per_gpu"],
            before=_side(sides["before"], runs),
            after=_side(sides["after"], runs),
        )
        for name, sides in recorded["pairs"].items()
    )


def outcomes(pairs: Iterable[Pair], efficiencies: Efficiencies | None = None) -> list[Outcome]:
    """The model's answer for each pair."""
    found = []
    for pair in pairs:
        before, after = pair.before.estimate(efficiencies), pair.after.estimate(efficiencies)
        steps = ratio(before, after, efficiencies=efficiencies)
        samples = pair.before.samples / pair.after.samples
        modelled = Interval(value=steps.value * samples, low=steps.low * samples, high=steps.high * samples)
        found.append(Outcome(pair=pair, modelled=modelled, measured=1 / pair.speedup))
    return found


def median_error(found: Iterable[Outcome]) -> float:
    """The median of the errors' sizes."""
    return statistics.median(abs(outcome.error) for outcome in found)


def by_kind(found: Iterable[Outcome]) -> Mapping[str, list[Outcome]]:
    """The outcomes of each kind of change, the commonest first."""
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        kinds[outcome.pair.kind].append(outcome)
    return dict(sorted(kinds.items(), key=lambda item: -len(item[1])))


@cache
def find_gpu(name: str) -> hardware.Gpu:
    """A GPU of the tables, or one of two that are not in them."""
    if name == "3080-ti-mobile":  # GA103: 58 multiprocessors, 512 GB/s, some 1.4 GHz within its power
        return _scaled("3080-ti", multiprocessors=58, bandwidth=512 * 10**9, clock=1.4 / 1.665)
    if name == "h100-96":  # HBM2e at 2.4 TB/s and 500 W
        return _scaled("h100", multiprocessors=132, bandwidth=2400 * 10**9, clock=1.0)
    return hardware.find(name)


def _scaled(name: str, *, multiprocessors: int, bandwidth: int, clock: float) -> hardware.Gpu:
    gpu = hardware.find(name)
    factor = clock * multiprocessors / gpu.multiprocessors
    return replace(
        gpu,
        multiprocessors=multiprocessors,
        memory_bandwidth=bandwidth,
        peak_flops=MappingProxyType({dtype: math.floor(peak * factor) for dtype, peak in gpu.peak_flops.items()}),
    )


def _side(side: Mapping[str, Any], runs: Mapping[str, tuple[Operation, ...]]) -> Side:
    fields = {name: value for name, value in side.items() if name not in ("run", "collectives")}
    return Side(
        operations=runs[side["run"]],
        collectives=msgspec.convert(side["collectives"], tuple[Collective, ...]),
        **fields,
    )


def _row(row: list[Any]) -> Operation:
    return msgspec.convert(dict(zip(COLUMNS, row, strict=True)), Operation)

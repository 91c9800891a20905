"""Strategies over several GPUs: the table of ``--gpus N``, and how many GPUs would do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vramdoc.advise import measures
from vramdoc.advise.candidate import Candidate, Ledger, Result
from vramdoc.advise.options import alone, is_allowed
from vramdoc.advise.records import Records
from vramdoc.advise.titles import titles
from vramdoc.hardware import Gpu, Link
from vramdoc.report.advice import RankPeak, Way
from vramdoc.report.measurement import Choice, Place
from vramdoc.report.operations import Collective

_BESIDE = ("checkpoint",)
"""Measures that the table also shows together with each strategy."""
_MOST_GPUS = 1024
_SLOWER = 1.0
_ROUNDS = {"all_reduce": 2.0}  # times that a ring carries the buffer


def strategies(*, block: str | None) -> list[Choice]:
    """Every way to run on several GPUs, as it is tried alone."""
    return [alone(measure, block=block) for measure in measures.ALL if measure.tier == "sharding"]


def nodes(there: Place) -> int:
    """Machines that a world lies on."""
    return -(-there.world_size // there.local_size)


def place(gpus: int, per_node: int | None, rank: int = 0) -> Place:
    """One rank of a world of ``gpus``, as many on a machine as it has."""
    return Place(rank=rank, world_size=gpus, local_size=min(gpus, per_node or gpus))


def counts(gpus: int) -> list[int]:
    """2, 4, 8, ... up to ``gpus``, which is the last whatever it is."""
    powers = [2**power for power in range(1, gpus.bit_length()) if 2**power < gpus]
    return [*powers, gpus] if gpus > 1 else []


def candidates(gpus: int, per_node: int | None, *, block: str | None, beside: Sequence[Choice]) -> list[Candidate]:
    """What the table holds for ``gpus`` GPUs, measured on the first rank."""
    there = place(gpus, per_node)
    found: list[Candidate] = []
    for strategy in strategies(block=block):
        if strategy.name == "hsdp" and nodes(there) == 1:
            continue  # that is ZeRO-3
        plain = Candidate(place=there).having(strategy)
        assert plain is not None, "one choice alone"
        found.append(plain)
        found += [more for choice in beside if (more := plain.having(choice)) is not None]
    return found


def beside(ok: Sequence[str], allow: Sequence[str], *, block: str | None) -> list[Choice]:
    """Measures to show together with each strategy: those that apply to the target and that the user allows."""
    return [
        alone(measure, block=block)
        for name in _BESIDE
        if name in ok and is_allowed(measure := measures.by_name(name), allow)
    ]


def table(
    ledger: Ledger, records: Records, tried: Sequence[Candidate], gpu: Gpu, *, node_link: Link, allowed_bytes: int
) -> list[Way]:
    """One row for each of ``tried`` that was measured or says why not, the last rank measured too."""
    first = ledger.measure(tried)
    good = [result for result in first if result.ok]
    last = ledger.measure([_last(result.candidate) for result in good])
    lasts = {result.candidate.key: other for result, other in zip(good, last, strict=True)}
    return [
        _way(result, lasts.get(result.candidate.key), records, gpu, node_link, allowed_bytes)
        for result in first
        # Why a strategy cannot be used is said once, not again with what is shown beside it.
        if result.ok or len(result.candidate.choices) == 1
    ]


def enough(ledger: Ledger, smallest: Candidate, per_node: int | None, start: int, allowed_bytes: int) -> Result | None:
    """The smallest number of GPUs, doubled from ``start``, on which a strategy makes ``smallest`` fit."""
    gpus = start
    while gpus <= _MOST_GPUS:
        tried = [
            sharded
            for strategy in strategies(block=None)
            if (sharded := replace(smallest, place=place(gpus, per_node)).having(strategy)) is not None
        ]
        fitting = [each for each in ledger.measure(tried) if each.ok and each.reserved_bytes <= allowed_bytes]
        if fitting or not tried:
            return min(fitting, key=lambda each: each.reserved_bytes, default=None)
        gpus *= 2
    return None


def communication_bytes(collectives: Sequence[Collective]) -> int:
    """Bytes that one rank sends in a step, by a ring."""
    return round(
        sum(
            row.count * row.bytes * _ROUNDS.get(row.op, 1.0) * (row.group_size - 1) / row.group_size
            for row in collectives
            if row.group_size > 1
        )
    )


def one(records: Records, gpu: Gpu, allowed_bytes: int) -> Way:
    """The first row: the target as it is, on one GPU."""
    base = records.base
    return Way(
        gpus=1,
        nodes=1,
        title=titles(base.candidate, 0),
        choices=(),
        ranks=(
            RankPeak(
                rank=0,
                allocated_bytes=base.allocated_bytes,
                reserved_bytes=base.reserved_bytes,
                run=records.name(base),
            ),
        ),
        fits=base.reserved_bytes <= allowed_bytes,
        communication_bytes=0,
        exposed_seconds=0.0,
        step_seconds=base.time.seconds if base.time is not None else None,
        speed=1.0,
        link=(gpu.peer_link or gpu.host_link).name,
    )


def _title(candidate: Candidate) -> str:
    """The strategy first, then what goes with it."""
    ordered = sorted(candidate.choices, key=lambda choice: measures.by_name(choice.name).tier != "sharding")
    return titles(replace(candidate, choices=tuple(ordered)), 0)


def _last(candidate: Candidate) -> Candidate:
    assert candidate.place is not None, "a row of several GPUs"
    return replace(candidate, place=replace(candidate.place, rank=candidate.place.world_size - 1))


def _way(result: Result, last: Result | None, records: Records, gpu: Gpu, node_link: Link, allowed_bytes: int) -> Way:
    there = result.candidate.place
    assert there is not None, "a row of several GPUs"
    link = node_link if nodes(there) > 1 else gpu.peer_link or gpu.host_link
    ratio = records.ratio(result)
    ranks = [rank for rank in (result, last) if rank is not None and rank.ok]
    if len(ranks) == 2 and ranks[0].reserved_bytes == ranks[1].reserved_bytes:
        ranks = ranks[:1]
    speed = 1 / ratio.value if ratio is not None else None
    measurement = result.measurement
    return Way(
        gpus=there.world_size,
        nodes=nodes(there),
        title=_title(result.candidate),
        choices=result.candidate.choices,
        ranks=tuple(
            RankPeak(
                rank=rank.candidate.place.rank if rank.candidate.place is not None else 0,
                allocated_bytes=rank.allocated_bytes,
                reserved_bytes=rank.reserved_bytes,
                run=records.name(rank),
            )
            for rank in ranks
        ),
        fits=bool(ranks) and max(rank.reserved_bytes for rank in ranks) <= allowed_bytes,
        communication_bytes=communication_bytes(measurement.collectives) if measurement is not None else 0,
        exposed_seconds=result.time.exposed_communication_seconds if result.time is not None else None,
        step_seconds=result.time.seconds if result.time is not None else None,
        speed=speed,
        link=link.name,
        warning=_warning(result, speed, there.world_size, link),
        reason=result.error,
    )


def _warning(result: Result, speed: float | None, gpus: int, link: Link) -> str:
    """Where waiting for the link outweighs what more GPUs compute."""
    if speed is None or result.time is None or not result.time.seconds:
        return ""
    share = result.time.exposed_communication_seconds / result.time.seconds
    if speed <= _SLOWER:
        return f"slower than one GPU: {share:.0%} of the step waits for {link.name}"
    if share > 0.5:
        return f"{share:.0%} of the step waits for {link.name}: {gpus} GPUs do the work of {speed:.1f}"
    return ""

"""The cheapest change that brings a step under a budget, for whoever broke it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vramdoc import nullgpu
from vramdoc.advise import measures
from vramdoc.advise.asked import Asked, checked
from vramdoc.advise.bench import Bench
from vramdoc.advise.candidate import Candidate, MeasureAll, Result
from vramdoc.advise.options import alone
from vramdoc.advise.titles import titles
from vramdoc.errors import VramdocError
from vramdoc.report import Report
from vramdoc.report.findings import Metric
from vramdoc.report.measurement import Request
from vramdoc.runner.devices import device_specs
from vramdoc.runner.pool import Pool
from vramdoc.runner.profile import worker_environment
from vramdoc.runner.progress import ignore
from vramdoc.units import format_bytes

_TIERS = ("free", "speed")


def cheapest(measure: MeasureAll, limit_bytes: int, metric: Metric, context_bytes: int) -> Result | None:
    """The measure of tier free or speed that brings ``metric`` to at most ``limit_bytes`` in the least time."""
    for tier in _TIERS:
        tried = [
            Candidate(choices=(alone(each, block=None),))
            for each in measures.ALL
            if each.tier == tier and not each.needs
        ]
        under = [
            result for result in measure(tried) if result.ok and _figure(result, metric, context_bytes) <= limit_bytes
        ]
        if under:
            return min(under, key=lambda result: (result.seconds_per_sample, result.reserved_bytes))
    return None


def cheapest_hint(asked: Asked, limit_bytes: int, metric: Metric) -> str:
    """That measure in one sentence, with its command; "" where none does. It takes some seconds.

    Raises an error of :mod:`vramdoc.errors` where no worker can be started.
    """
    environment = nullgpu.environment(device_specs(asked.gpu), limited=False, base=worker_environment())
    with Pool(environment) as pool:
        bench = Bench(
            pool=pool,
            gpu=asked.gpu,
            base=Request(
                target=str(asked.path),
                batch_size=asked.batch_size,
                timeout=asked.timeout,
                assume=asked.assume or None,
                operations=True,
            ),
            listener=ignore,
            describe=lambda candidate: titles(candidate, 0),
        )
        found = cheapest(bench, limit_bytes, metric, asked.room.context_bytes)
    return sentence(found, asked, metric) if found is not None else ""


def advisor(metric: Metric) -> Callable[[Report, int], str]:
    """What ``vramdoc check`` asks for a report that has so many bytes too much in ``metric``: the hint, or "".

    A hint is an extra: where none can be had, for whatever reason of ours or the target's, there is none.
    """

    def advise(report: Report, excess_bytes: int) -> str:
        if report.device.kind != "null":
            return ""
        now = {
            "allocated": report.peak.allocated_bytes,
            "reserved": report.peak.reserved_bytes,
            "device": report.device_bytes,
        }
        try:
            asked = checked(report.target, gpu=report.device.name, batch_size=report.batch_size)
            return cheapest_hint(asked, now[metric] - excess_bytes, metric)
        except VramdocError:
            return ""

    return advise


def sentence(found: Result, asked: Asked, metric: Metric) -> str:
    """What to do, what it gives, and where the code is."""
    names: Sequence[str] = [choice.name for choice in found.candidate.choices]
    size = format_bytes(_figure(found, metric, asked.room.context_bytes))
    command = f"vramdoc advise {asked.name} --gpu {asked.gpu.short_name} --show {names[-1]}"
    return f"{titles(found.candidate, 0)} brings it to {size}: {command}"


def _figure(result: Result, metric: Metric, context_bytes: int) -> int:
    if metric == "allocated":
        return result.allocated_bytes
    return result.reserved_bytes + (context_bytes if metric == "device" else 0)

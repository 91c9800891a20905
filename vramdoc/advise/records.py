"""Gives every run that a figure rests on a name, and turns results into values of the report. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from vramdoc.advise import measures
from vramdoc.advise.batch import Largest
from vramdoc.advise.candidate import Result
from vramdoc.advise.cost import TimeEstimate, ratio
from vramdoc.advise.options import is_allowed
from vramdoc.advise.reasons import reason
from vramdoc.advise.titles import title
from vramdoc.report import Report
from vramdoc.report.advice import AdviceRun, Effect, LargestBatch, Plan, PlanStep, Point, Ratio, StepTime
from vramdoc.report.measurement import Choice


class Records:
    """The runs that the report names so far, and what its figures are compared with."""

    def __init__(
        self, base: Result, report: Report, *, blocks: int, allowed_bytes: int, allow: tuple[str, ...]
    ) -> None:
        self.base = base
        self._report = report
        self._blocks = blocks
        self._allowed_bytes = allowed_bytes
        self._allow = allow
        self._runs: dict[str, AdviceRun] = {}
        self.name(base)

    @property
    def runs(self) -> tuple[AdviceRun, ...]:
        """All that were named, in that order."""
        return tuple(self._runs.values())

    def timed(self, result: Result, seconds: float) -> None:
        """What a step of ``result`` took on this machine's own GPU."""
        self.name(result)
        key = result.candidate.key
        self._runs[key] = replace(self._runs[key], real_seconds=seconds)

    def name(self, result: Result) -> str:
        """The run's name, which is its place in ``runs``."""
        key = result.candidate.key
        if key not in self._runs:
            self._runs[key] = AdviceRun(
                id=f"r{len(self._runs)}",
                choices=result.candidate.choices,
                batch_size=result.candidate.batch_size,
                place=result.candidate.place,
                measurement=result.measurement,
                error=result.error,
                time=step_time(result.time),
            )
        return self._runs[key].id

    def ratio(self, result: Result) -> Ratio | None:
        """Time for a sample over the base's."""
        if result.time is None or self.base.time is None:
            return None
        found = ratio(self.base.time, result.time)
        scale = self.base.samples / result.samples
        return Ratio(value=found.value * scale, low=found.low * scale, high=found.high * scale)

    def effect(self, choice: Choice, result: Result) -> Effect:
        """One measure alone."""
        measure = measures.by_name(choice.name)
        return Effect(
            choice=choice,
            title=title(choice, self._blocks),
            tier=measure.tier,
            allowed=is_allowed(measure, self._allow),
            change=measure.change,
            cost=measure.cost,
            risks=(*measure.risks, *_notes(result)),
            run=self.name(result),
            allocated_bytes=result.allocated_bytes if result.ok else None,
            reserved_bytes=result.reserved_bytes if result.ok else None,
            saved_bytes=self.base.reserved_bytes - result.reserved_bytes if result.ok else 0,
            time=self.ratio(result),
            reason=reason(self._report, result),
            code=codes(result).get(choice.name, ""),
        )

    def plan(self, label: str, result: Result, steps: list[Result], largest: Largest | None) -> Plan:
        """A plan; ``steps`` are the runs with its first change, its first two, and so on."""
        assert result.measurement is not None, "plans are made of what was measured"
        code = codes(result)
        return Plan(
            label=label,
            run=self.name(result),
            batch_size=result.measurement.batch_size,
            gpus=result.candidate.gpus,
            allocated_bytes=result.allocated_bytes,
            reserved_bytes=result.reserved_bytes,
            fits=result.reserved_bytes <= self._allowed_bytes,
            time=self.ratio(result),
            largest_batch=self.largest(largest),
            steps=tuple(
                self._step(choice, step, code.get(choice.name, ""))
                for choice, step in zip(result.candidate.choices, steps, strict=True)
            ),
            notes=tuple(dict.fromkeys(_notes(result))),
        )

    def largest(self, found: Largest | None) -> LargestBatch | None:
        """The largest batch with the run that shows it."""
        if found is None:
            return None
        result = found.result
        return LargestBatch(
            size=found.size,
            reserved_bytes=result.reserved_bytes if result is not None else 0,
            run=self.name(result) if result is not None else "",
            at_least=found.at_least,
        )

    def point(self, result: Result) -> Point:
        """One run of the front."""
        return Point(run=self.name(result), reserved_bytes=result.reserved_bytes, time=self.ratio(result))

    def _step(self, choice: Choice, result: Result, code: str) -> PlanStep:
        return PlanStep(
            choice=choice,
            title=title(choice, self._blocks),
            tier=measures.by_name(choice.name).tier,
            reserved_bytes=result.reserved_bytes if result.ok else None,
            time=self.ratio(result),
            run=self.name(result),
            code=code,
        )


def codes(result: Result) -> Mapping[str, str]:
    """The code that ran, by measure."""
    if result.measurement is None:
        return {}
    return {applied.name: applied.code for applied in result.measurement.applied}


def step_time(estimate: TimeEstimate | None) -> StepTime | None:
    """The part of an estimate that the report keeps."""
    if estimate is None:
        return None
    return StepTime(
        seconds=estimate.seconds,
        low=estimate.low,
        high=estimate.high,
        exposed_communication_seconds=estimate.exposed_communication_seconds,
        parts=estimate.parts,
    )


def _notes(result: Result) -> tuple[str, ...]:
    """What the run itself had to say of the measures taken."""
    return result.measurement.warnings if result.measurement is not None else ()

"""Runs candidates in workers: from a candidate to a request, and from what it gave to a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from vramdoc import nullgpu
from vramdoc.advise.candidate import Candidate, Result
from vramdoc.advise.cost import TimeEstimate, step_seconds
from vramdoc.errors import MeasureError
from vramdoc.hardware import Gpu, Link
from vramdoc.report.measurement import Measurement, Request
from vramdoc.runner.devices import device_specs
from vramdoc.runner.pool import Outcome, Pool
from vramdoc.runner.progress import Listener, Progress

_LONGEST = 64  # characters of a stage


@dataclass(slots=True, kw_only=True)
class Bench:
    """Where candidates are measured; an instance is a :data:`vramdoc.advise.candidate.MeasureAll`."""

    pool: Pool
    gpu: Gpu
    base: Request  # the target as it is
    listener: Listener
    describe: Callable[[Candidate], str]
    stage: str = "each measure alone"  # what the search is at
    node_link: Link | None = None

    def __call__(self, candidates: Sequence[Candidate]) -> list[Result]:
        """The results of ``candidates``, in order."""
        total = len(candidates)

        def tell(done: int) -> None:
            trying = self.describe(candidates[min(done, total - 1)])
            stage = f"{self.stage}: {trying}"
            short = stage if len(stage) <= _LONGEST else stage[: _LONGEST - 1] + "…"
            self.listener(Progress(stage=short, done=self.pool.measured + done))

        tell(0)
        outcomes = self.pool.measure_all([self.request(each) for each in candidates], tell)
        return [self.result(each, outcome) for each, outcome in zip(candidates, outcomes, strict=True)]

    def request(self, candidate: Candidate) -> Request:
        """The run of ``candidate``. Its operations are recorded where its time will be asked for."""
        specs = device_specs(self.gpu, candidate.place.local_size if candidate.place is not None else 1)
        build = nullgpu.torch_build()
        assert build is not None, "there are workers"
        return replace(
            self.base,
            batch_size=candidate.batch_size or self.base.batch_size,
            measures=candidate.choices,
            place=candidate.place,
            null_gpu=nullgpu.configuration(specs, build, limited=False),
            operations=candidate.batch_size is None,
        )

    def result(self, candidate: Candidate, outcome: Outcome) -> Result:
        """What ``candidate`` gave."""
        if not isinstance(outcome, Measurement):
            error = outcome.message if isinstance(outcome, MeasureError) else f"failed: {outcome.message}"
            return Result(candidate=candidate, error=error, applies=not isinstance(outcome, MeasureError))
        if outcome.out_of_memory is not None:
            return Result(candidate=candidate, error="failed: out of memory", measurement=outcome)
        return Result(
            candidate=candidate,
            allocated_bytes=outcome.peak_allocated_bytes,
            reserved_bytes=outcome.peak_reserved_bytes,
            samples=max(outcome.batch_size, 1) * candidate.replicas,
            time=self.time(outcome),
            measurement=outcome,
        )

    def time(self, measurement: Measurement) -> TimeEstimate | None:
        """The modelled time of a step; None where its operations were not recorded."""
        if not measurement.operations:
            return None
        return step_seconds(measurement.operations, measurement.collectives, self.gpu, node_link=self.node_link)

"""``advise``: measures the target as it is, every measure alone, combinations, and what several GPUs would do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from vramdoc import __version__, hardware, nullgpu
from vramdoc.advise import measures, plans, verdict, ways
from vramdoc.advise.asked import Asked
from vramdoc.advise.batch import Largest, largest_batch
from vramdoc.advise.bench import Bench
from vramdoc.advise.candidate import Candidate, Ledger, Result
from vramdoc.advise.front import front
from vramdoc.advise.measures import Measure
from vramdoc.advise.options import alone
from vramdoc.advise.proofs import prove
from vramdoc.advise.records import Records, step_time
from vramdoc.advise.screen import choices_by_axis, screen
from vramdoc.advise.search import Space, search
from vramdoc.advise.shortage import shortage
from vramdoc.advise.titles import titles
from vramdoc.errors import VramdocError
from vramdoc.report.advice import AdviceReport, Effect, Plan, Point, Proof, Shortage, Way
from vramdoc.report.measurement import Request
from vramdoc.runner.cache import RunCache
from vramdoc.runner.devices import device_specs
from vramdoc.runner.fingerprint import fingerprint
from vramdoc.runner.pool import Pool
from vramdoc.runner.process import Worker
from vramdoc.runner.profile import predict, worker_environment
from vramdoc.runner.progress import Listener, Progress, ignore

_NODE_LINK = "ethernet-400"
_MOST_INPUT_BYTES = 2 << 30
"""Of a batch on the host: the search for the largest batch stops there, since batches are real."""
_MOST_BATCHES = 1 << 16


@dataclass(slots=True)
class _Found:
    """The parts of the report, filled in as they become known: what an interrupt finds is the best so far."""

    effects: tuple[Effect, ...] = ()
    largest: Largest | None = None
    plans: tuple[Plan, ...] = ()
    front: tuple[Point, ...] = ()
    ways: tuple[Way, ...] = ()
    shortage: Shortage | None = None
    proofs: tuple[Proof, ...] = ()
    interrupted: bool = False


def advise(
    asked: Asked, *, cache: Path | None = None, only: str | None = None, progress: Listener | None = None
) -> AdviceReport:
    """Advice for one target. ``cache`` is a folder for runs, which later calls then need not repeat; with ``only``,
    the name of a measure, nothing else is looked at.

    Ctrl-C after the target as it is has been measured ends the search, and the report says so. Raises an error of
    :mod:`vramdoc.errors` where the target cannot be measured at all.
    """
    started = time.monotonic()
    listener = progress or ignore
    listener(Progress(stage="starting torch"))
    environment = nullgpu.environment(device_specs(asked.gpu), limited=False, base=worker_environment())
    kept = RunCache(cache, fingerprint(asked.path, environment)) if cache is not None else None
    with Pool(environment, cache=kept) as pool:
        session = _Session(asked, pool, listener)
        found = session.found(only)
    return session.report(found, seconds=time.monotonic() - started)


class _Session:
    """One call of ``advise``: its workers, and the target as it is."""

    def __init__(self, asked: Asked, pool: Pool, listener: Listener) -> None:
        self._asked = asked
        self._pool = pool
        request = Request(target=str(asked.path), batch_size=asked.batch_size, timeout=asked.timeout, operations=True)
        listener(Progress(stage="measuring the target as it is"))
        self._base, runs, request = predict(
            asked.name, request, asked.gpu, pool.measure, assume=asked.assume, notes=list(asked.notes)
        )
        pool.measured = pool.cached = 0  # from here on candidates are counted
        self._blocks = runs.plain.blocks
        self._count = self._blocks.count if self._blocks is not None else 0
        self._bench = Bench(
            pool=pool,
            gpu=asked.gpu,
            base=request,
            listener=listener,
            describe=lambda candidate: titles(candidate, self._count),
            node_link=hardware.find_link(_NODE_LINK),
        )
        self._room = asked.room
        self._ledger = Ledger(self._bench)
        base = self._bench.result(Candidate(), runs.plain)
        self._ledger.add(base)
        self._records = Records(
            base, self._base, blocks=self._count, allowed_bytes=self._room.allowed_bytes, allow=asked.allow
        )

    def found(self, only: str | None) -> _Found:
        """All parts, or those that there was time for; with ``only``, that measure alone."""
        found = _Found()
        try:
            if only is not None:
                self._show(found, measures.by_name(only))
            else:
                self._fill(found)
        except KeyboardInterrupt:
            found.interrupted = True
            if not found.plans:
                self._best_so_far(found)
        return found

    def report(self, found: _Found, *, seconds: float) -> AdviceReport:
        """The report of what was found."""
        return AdviceReport(
            vramdoc_version=__version__,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            target=self._asked.name,
            gpu=self._asked.gpu.short_name,
            gpus=self._asked.gpus,
            allow=self._asked.allow,
            base=self._base,
            base_run=self._records.name(self._records.base),
            base_time=step_time(self._records.base.time),
            room=self._room,
            state_bytes=verdict.state_bytes(self._base),
            activation_bytes=verdict.activation_bytes(self._base),
            largest_batch=self._records.largest(found.largest),
            effects=found.effects,
            plans=found.plans,
            front=found.front,
            ways=found.ways,
            shortage=found.shortage,
            proofs=found.proofs,
            runs=self._records.runs,
            measured=self._pool.measured,
            cached=self._pool.cached,
            seconds=seconds,
            interrupted=found.interrupted,
            notes=self._asked.notes,
            flags=self._asked.flags,
            allow_flag=self._asked.allow_flag,
        )

    def _show(self, found: _Found, measure: Measure) -> None:
        gpus, block = self._asked.gpus, self._asked.block
        there = ways.place(gpus, self._asked.gpus_per_node) if measure.tier == "sharding" and gpus > 1 else None
        choice = alone(measure, block=block)
        result = self._ledger.one(Candidate(choices=(choice,), place=there))
        found.effects = (self._records.effect(choice, result),)
        if self._asked.verify:
            found.proofs = prove(self._pool, self._bench.base, found.effects)

    def _fill(self, found: _Found) -> None:
        asked = self._asked
        screened = screen(self._ledger, block=asked.block)
        effects = [self._records.effect(choice, result) for _, choice, result in screened]
        found.effects = tuple(sorted(effects, key=lambda effect: -effect.saved_bytes))
        self._bench.stage = "largest batch"
        found.largest = self._largest(self._records.base)
        self._bench.stage = "combinations"
        space = Space(
            choices=choices_by_axis(
                screened,
                allow=asked.allow,
                block=asked.block,
                blocks=self._count,
                batch=self._base.batch_size,
                gpus=asked.gpus,
            ),
            allowed_bytes=self._room.allowed_bytes,
            saved_by_block=verdict.saved_by_block(self._base.modules, self._blocks),
        )
        start = self._start()
        best = search(self._ledger, start, space)
        self._bench.stage = "plans"
        self._plans(found, best, sizes=True)
        found.ways = self._ways(screened_ok=[measure.name for measure, _, result in screened if result.ok])
        found.shortage = self._shortage(found, best)
        if asked.verify:
            found.proofs = prove(self._pool, self._bench.base, found.effects)

    def _start(self) -> list[Candidate]:
        """Where the search begins: the target as it is, or each strategy on all the GPUs."""
        if self._asked.gpus == 1 or not ways.strategies(block=None):
            return [Candidate()]
        there = ways.candidates(self._asked.gpus, self._asked.gpus_per_node, block=self._asked.block, beside=())
        return there or [Candidate()]

    def _plans(self, found: _Found, best: Sequence[Result], *, sizes: bool) -> None:
        chosen = plans.choose(self._ledger, best, self._room.allowed_bytes)
        built = []
        if self._asked.measure_time and sizes:
            self._time([self._records.base, *(result for _, result in chosen)])
        for label, result in chosen:
            steps = self._ledger.measure(plans.prefixes(result.candidate))
            built.append(self._records.plan(label, result, steps, self._largest(result) if sizes else None))
        found.plans = tuple(built)
        found.front = tuple(self._records.point(result) for result in best)

    def _time(self, results: Sequence[Result]) -> None:
        """Times steps on this machine's own GPU. What does not fit it, or fails there, stays untimed."""
        for result in results:
            request = replace(self._bench.request(result.candidate), null_gpu=None, operations=False)
            with suppress(VramdocError), Worker(worker_environment(), null=False, listener=ignore) as worker:
                seconds = worker.measure(request).step_seconds
                if seconds is not None:
                    self._records.timed(result, seconds)

    def _best_so_far(self, found: _Found) -> None:
        """Plans of what has been measured already: nothing more is run."""
        results = [each for each in self._ledger.results() if each.candidate.batch_size is None]
        allowed = {effect.choice.name for effect in found.effects if effect.allowed}
        mine = [each for each in results if all(choice.name in allowed for choice in each.candidate.choices)]
        self._ledger.close()
        self._plans(found, front(mine), sizes=False)

    def _largest(self, result: Result) -> Largest | None:
        """The largest batch with the choices of ``result``, all its ranks alike."""
        if result.measurement is None:
            return None
        parts = result.candidate.of("micro_batch")
        inputs = max(self._base.categories["inputs"] // self._base.batch_size, 1)
        return largest_batch(
            self._ledger,
            replace(result.candidate, batch_size=None),
            self._room.allowed_bytes,
            current=self._base.batch_size,
            most=min(_MOST_INPUT_BYTES // inputs, _MOST_BATCHES),
            step=int(parts.options["parts"]) if parts is not None else 1,
        )

    def _ways(self, *, screened_ok: Sequence[str]) -> tuple[Way, ...]:
        asked = self._asked
        self._bench.stage = "GPUs"
        beside = ways.beside(screened_ok, asked.allow, block=asked.block)
        tried = [
            candidate
            for gpus in ways.counts(asked.gpus)
            for candidate in ways.candidates(gpus, asked.gpus_per_node, block=asked.block, beside=beside)
        ]
        if not tried:
            return ()
        link, allowed = hardware.find_link(_NODE_LINK), self._room.allowed_bytes
        return (
            ways.one(self._records, asked.gpu, allowed),
            *ways.table(self._ledger, self._records, tried, asked.gpu, node_link=link, allowed_bytes=allowed),
        )

    def _shortage(self, found: _Found, best: Sequence[Result]) -> Shortage | None:
        if any(plan.fits for plan in found.plans) or not best:
            return None
        self._bench.stage = "more GPUs"
        smallest = min(best, key=lambda result: result.reserved_bytes)
        attributed = replace(self._bench.request(smallest.candidate), attributed=True, operations=False)
        return shortage(
            self._ledger,
            self._records,
            smallest,
            self._pool.measure(attributed),
            self._asked,
        )

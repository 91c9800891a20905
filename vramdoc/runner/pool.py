"""Several zygotes side by side that serve the runs of one target on null GPUs, with a cache before them."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from types import TracebackType
from typing import Self

from vramdoc.errors import MeasureError, VramdocError
from vramdoc.report.measurement import Measurement, Request, Verification
from vramdoc.runner.cache import RunCache
from vramdoc.runner.process import Worker
from vramdoc.runner.progress import ignore

_MOST_WORKERS = 4  # each has torch in memory

Outcome = Measurement | VramdocError
"""What a run gave, or why it gave nothing."""


class Pool:
    """Worker processes as a context manager; Ctrl-C raises KeyboardInterrupt in the thread that waits for a result."""

    def __init__(self, environment: Mapping[str, str], *, cache: RunCache | None = None, jobs: int | None = None):
        self._environment = environment
        self._cache = cache
        self.jobs = jobs or min(os.cpu_count() or 1, _MOST_WORKERS)
        self.measured = 0  # runs, those of the cache included
        self.cached = 0  # of these, answered by the cache
        self._workers: list[Worker] = []
        self._idle: queue.SimpleQueue[Worker | None] = queue.SimpleQueue()
        for _ in range(self.jobs):
            self._idle.put(None)  # a worker that has still to be started
        self._threads = ThreadPoolExecutor(self.jobs, thread_name_prefix="vramdoc-run")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every worker. Runs that go on end with an error that nobody sees."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown(wait=True)
        for worker in self._workers:
            worker.close()
        self._workers.clear()
        if self._cache is not None:
            self._cache.prune()

    def measure(self, request: Request) -> Measurement:
        """Runs one request; raises why it gave nothing."""
        (outcome,) = self.measure_all([request])
        if isinstance(outcome, VramdocError):
            raise outcome
        return outcome

    def measure_all(
        self, requests: Sequence[Request], on_done: Callable[[int], None] = lambda _done: None
    ) -> list[Outcome]:
        """What each of ``requests`` gave, in order; ``on_done`` is told how many are through."""
        outcomes: dict[int, Outcome] = {}
        waiting = {}
        for index, request in enumerate(requests):
            kept = self._cache.get(request) if self._cache is not None else None
            if kept is not None:
                outcomes[index] = kept
                self.cached += 1
            else:
                waiting[self._threads.submit(self._run, request)] = index
        for done in as_completed(waiting):
            outcomes[waiting[done]] = done.result()
            on_done(len(outcomes))
        self.measured += len(requests)
        return [outcomes[index] for index in range(len(requests))]

    def verify(self, request: Request) -> Verification | VramdocError:
        """Runs a request that verifies its measures on the host."""
        worker = self._take()
        try:
            return worker.verify(request)
        except VramdocError as error:
            return error
        finally:
            self._give_back(worker)

    def _run(self, request: Request) -> Outcome:
        worker = self._take()
        outcome: Outcome
        try:
            outcome = worker.measure(request)
        except VramdocError as error:
            outcome = error
        finally:
            self._give_back(worker)
        if self._cache is not None and isinstance(outcome, Measurement | MeasureError):
            self._cache.put(request, outcome)
        return outcome

    def _take(self) -> Worker:
        worker = self._idle.get()
        if worker is None:
            worker = Worker(self._environment, null=True, listener=ignore, quiet="VRAMDOC_DEBUG" not in os.environ)
            self._workers.append(worker)
        return worker

    def _give_back(self, worker: Worker) -> None:
        """A worker that no longer answers is ended here, in the only thread that uses it."""
        if worker.broken and worker in self._workers:
            worker.kill()
        self._idle.put(None if worker.broken else worker)

"""Measures one test: what the fixture ``vram`` gives, and what a limit is held against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import torch

from vramdoc.nullgpu import counters
from vramdoc.report import LineRow, ModuleRow, Phase
from vramdoc.report.testing import Figures, Order
from vramdoc.worker.recording import Recorder
from vramdoc.worker.testing import explain
from vramdoc.worker.testing.reading import Reading, left_behind, read
from vramdoc.worker.testing.steps import Steps
from vramdoc.worker.testing.watch import Watch, allocator_stats
from vramdoc.worker.values import ValueShadow


class Vram:
    """One run of one test, in a process of its own. Sizes are bytes; until the call begins they are 0."""

    def __init__(self, order: Order, root: Path) -> None:
        self._order = order
        self._root = root
        self._stack = ExitStack()
        self._steps = Steps()
        self._watch: Watch | None = None
        self._peaks = {"allocated_bytes": 0, "reserved_bytes": 0}  # as far as the test has reset the allocator's own
        self._calling = False
        self.figures: Figures | None = None  # once the call has ended

    def __enter__(self) -> Self:
        # torch.cuda.reset_peak_memory_stats in a test is about the test's own readings, not about ours.
        reset = torch._C._cuda_resetPeakMemoryStats

        def keep_and_reset(device: int) -> None:
            self._keep_peaks()
            reset(device)

        self._reset = reset
        torch._C._cuda_resetPeakMemoryStats = keep_and_reset
        if self._order.shadowed:
            self._stack.enter_context(ValueShadow())
        if self._order.attributed:
            self._watch = self._stack.enter_context(Watch(self._stack.enter_context(Recorder())))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()
        torch._C._cuda_resetPeakMemoryStats = self._reset

    @property
    def peak_bytes(self) -> int:
        """The most that was allocated at once since the call began; what fixtures hold counts."""
        return self._peak("allocated_bytes")

    @property
    def reserved_bytes(self) -> int:
        """The most that the allocator held at once since the call began."""
        return self._peak("reserved_bytes")

    @property
    def allocated_bytes(self) -> int:
        """What is allocated now."""
        return allocator_stats()["allocated_bytes"]["all"]["current"] if torch.cuda.is_initialized() else 0

    @property
    def growth_bytes(self) -> int | None:
        """What a step leaves behind, on average from the third on; None before there are three."""
        return self._steps.growth_bytes()

    @property
    def categories(self) -> dict[str, int]:
        """The peak so far by category; the values add up to :attr:`peak_bytes`, ``rounding`` being the rest."""
        return self._read().categories

    @property
    def modules(self) -> tuple[ModuleRow, ...]:
        """The peak so far by module of the models that were called."""
        return self._read().modules

    @property
    def lines(self) -> tuple[LineRow, ...]:
        """The peak so far by source line, largest first; paths are relative to pytest's root folder."""
        return self._read().lines

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases so far, each at its highest; see :meth:`phase`."""
        return self._read().phases

    def phase(self, name: str) -> Phase:
        """``build`` (until a model runs), ``forward`` (with the loss), ``backward``, ``optimizer`` or ``after_step``.

        Raises :class:`LookupError` for a phase that there was not.
        """
        phases = {phase.name: phase for phase in self.phases}
        if name not in phases:
            raise LookupError(f"no phase {name!r} so far: there were {', '.join(phases)}")
        return phases[name]

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around one step of a loop that has no optimizer: growth is told between the ends of these blocks."""
        if self._watch:
            self._watch.begin_step()
        yield
        self._steps.ended(self)
        if self._watch:
            self._watch.end_step()

    def start_call(self) -> None:
        """The test's own code begins."""
        self._calling = True
        if torch.cuda.is_initialized():
            self._reset(torch.cuda.current_device())
        self._peaks = dict.fromkeys(self._peaks, 0)
        if self._order.terms.growth_limit_bytes is not None or self._watch:
            self._stack.enter_context(self._steps)
        if self._watch:
            self._watch.start_call()

    def end_call(self, *, out_of_memory: bool = False) -> None:
        """The test's own code has ended."""
        self.figures = Figures(
            peak_allocated_bytes=self.peak_bytes,
            peak_reserved_bytes=self.reserved_bytes,
            steps=self._steps.count,
            growth_bytes=self.growth_bytes,
            unknown_reads=0 if self._order.shadowed else counters().unknown_reads,
            over=out_of_memory,
        )
        if self._watch:
            reading = self._read()
            held_to_growth = self._order.terms.growth_limit_bytes is not None
            leak = left_behind(self._watch.recording(), self._root) if held_to_growth else ()
            text = explain.explanation(reading, leak) if self.figures.peak_allocated_bytes else ""
            self.figures = replace(self.figures, categories=reading.categories, explanation=text)
        self._calling = False

    def verdict(self) -> str:
        """Why the test fails: one line for each limit that it broke; "" where it broke none."""
        assert self.figures is not None
        broken = explain.broken(self.figures, self._order.terms)
        self.figures = replace(self.figures, over=bool(broken))
        return "\n".join(broken)

    def _peak(self, name: str) -> int:
        if not self._calling and self.figures is not None:
            allocated = name == "allocated_bytes"
            return self.figures.peak_allocated_bytes if allocated else self.figures.peak_reserved_bytes
        if not torch.cuda.is_initialized():
            return 0
        return max(self._peaks[name], allocator_stats()[name]["all"]["peak"])

    def _keep_peaks(self) -> None:
        for name in self._peaks:
            self._peaks[name] = max(self._peaks[name], allocator_stats()[name]["all"]["peak"])

    def _read(self) -> Reading:
        assert self._watch is not None, "a test that uses vram is recorded"
        return read(self._watch.recording(), self.peak_bytes, self._root)

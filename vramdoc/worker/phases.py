"""The phases of a step: where each begins, its peak and its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from vramdoc.report import Phase


def _stats() -> dict[str, dict[str, dict[str, int]]]:
    # The nested dictionary as the allocator gives it: torch.cuda.memory_stats flattens and sorts it, 30 times slower.
    stats: dict[str, dict[str, dict[str, int]]] = torch._C._cuda_memoryStats(torch.cuda.current_device())
    return stats


@dataclass(slots=True)
class _Step:
    peaks: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class PhaseTracker:
    """Reads and resets the allocator's peak at each change of phase; counts nothing in between."""

    on_enter: Callable[[str, int], None] | None = None  # called with phase and step after each change
    phase: str = "load"
    step: int = 0
    reserved: dict[int, int] = field(default_factory=dict)  # step -> peak
    _steps: dict[int, _Step] = field(default_factory=dict)

    def enter(self, phase: str, step: int | None = None) -> None:
        """Ends the current phase and begins ``phase``, in ``step`` where a new one begins."""
        self.close()
        self.phase = phase
        if step is not None:
            self.step = step
        if self.on_enter:
            self.on_enter(phase, self.step)

    def close(self) -> None:
        """Books what the current phase took so far."""
        stats = _stats()
        record = self._steps.setdefault(self.step, _Step())
        peak = stats["allocated_bytes"]["all"]["peak"]
        record.peaks[self.phase] = max(peak, record.peaks.get(self.phase, 0))
        record.ends[self.phase] = stats["allocated_bytes"]["all"]["current"]
        self.reserved[self.step] = max(stats["reserved_bytes"]["all"]["peak"], self.reserved.get(self.step, 0))
        torch._C._cuda_resetPeakMemoryStats(torch.cuda.current_device())

    def step_peak(self, step: int) -> int:
        """Highest allocated in ``step``; ``load`` counts to step 0."""
        return max(self._steps[step].peaks.values())

    def step_end(self, step: int) -> int:
        """Allocated after ``step``."""
        return self._steps[step].ends["after_step"]

    def step_phases(self, step: int) -> tuple[Phase, ...]:
        """The phases of ``step`` in order, after those of ``load``."""
        load = self._steps[0]
        rows = [("load", load.peaks["load"], load.ends["load"])] if "load" in load.peaks else []
        record = self._steps[step]
        rows += [(name, peak, record.ends[name]) for name, peak in record.peaks.items() if name != "load"]
        return tuple(Phase(name=name, peak_bytes=peak, end_bytes=end) for name, peak, end in rows)

    def peak_phase(self, step: int) -> str:
        """The first phase of ``step`` that reached its peak."""
        peaks = self._steps[step].peaks
        return max(peaks, key=lambda name: peaks[name])


def alloc_retries() -> int:
    """torch's count of cached memory freed to make room."""
    retries = torch.cuda.memory_stats().get("num_alloc_retries", 0)
    assert isinstance(retries, int)
    return retries

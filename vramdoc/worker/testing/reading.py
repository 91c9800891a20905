"""Reads the recording of a test: pure functions, nothing here calls torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vramdoc.report import LineRow, ModuleRow, Phase
from vramdoc.worker.attribution import attribute
from vramdoc.worker.history import MARK, Recording

_ALLOCATION_UNIT = 512  # c10/core/AllocatorConfig.h, kMinBlockSize: every request is rounded up to it
_CALL = 1  # the first step of the test's own code; before it come its fixtures
_SETTLED = 3  # the first step whose leftovers count as a leak


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the highest moment of a test's call is made of."""

    phase: str
    phases: tuple[Phase, ...]  # in the order in which they first came, each at its highest
    categories: dict[str, int]  # add up to the peak
    modules: tuple[ModuleRow, ...]
    lines: tuple[LineRow, ...]  # largest first


def read(recording: Recording, peak_bytes: int, root: Path) -> Reading:
    """The reading at the peak, which is ``peak_bytes`` by the allocator's own count."""
    peaks: dict[tuple[int, str], int] = {}
    ends: dict[tuple[int, str], int] = {}
    for _, step, phase, total in _totals(recording.events):
        if step >= _CALL:
            peaks[step, phase] = max(total, peaks.get((step, phase), 0))
            ends[step, phase] = total
    step, phase = max(peaks, key=lambda key: peaks[key], default=(_CALL, "build"))
    attributed = attribute(recording, step=step, root=root)
    categories = dict(attributed.categories)
    categories["rounding"] += peak_bytes - sum(categories.values())
    return Reading(
        phase=phase,
        phases=tuple(_phases(peaks, ends, (step, phase), peak_bytes)),
        categories=categories,
        modules=attributed.modules,
        lines=attributed.lines,
    )


def _phases(
    peaks: dict[tuple[int, str], int], ends: dict[tuple[int, str], int], highest: tuple[int, str], peak_bytes: int
) -> Iterator[Phase]:
    """Each phase in its highest step. Sums of rounded requests, but for the peak itself, which the allocator told."""
    for name in dict.fromkeys(phase for _, phase in peaks):
        key = max((key for key in peaks if key[1] == name), key=lambda key: peaks[key])
        yield Phase(name=name, peak_bytes=peak_bytes if key == highest else peaks[key], end_bytes=ends[key])


def left_behind(recording: Recording, root: Path) -> tuple[LineRow, ...]:
    """The lines whose blocks were allocated in the third step or later and outlived it, largest first.

    As of the end of the last step: what holds them may be gone when the test ends.
    """
    end = max((i for i, event in enumerate(recording.events) if _change(event)[0] == "after_step"), default=0)
    last: dict[int, int] = {}  # address -> event of its live block
    born: dict[int, int] = {}  # event -> step
    step = 0
    for index, step, _, _ in _totals(recording.events[:end]):
        event = recording.events[index]
        if event["action"] == "alloc":
            last[event["addr"]], born[index] = index, step
        elif event["action"] == "free_requested":
            last.pop(event["addr"], None)
    # The last step's own are alive because it has only just ended.
    leaked = {index for index in last.values() if _SETTLED <= born[index] < step}
    events = [event for i, event in enumerate(recording.events[:end]) if i in leaked or _change(event)[0]]
    return attribute(replace(recording, events=events), step=step, root=root).lines


def _totals(events: list[dict[str, Any]]) -> Iterator[tuple[int, int, str, int]]:
    """At each event: its index, step, phase, and the bytes that are allocated after it."""
    live: dict[int, int] = {}
    step, phase, total = 0, "build", 0
    for index, event in enumerate(events):
        action, address = event["action"], event.get("addr", 0)
        if action == "alloc":
            live[address] = -(-event["size"] // _ALLOCATION_UNIT) * _ALLOCATION_UNIT
            total += live[address]
        elif action == "free_requested":
            total -= live.pop(address, 0)
        elif _change(event)[0]:
            phase, step = _change(event)
        yield index, step, phase, total


def _change(event: dict[str, Any]) -> tuple[str, int]:
    """The phase and the step that begin at ``event``; "" where none does."""
    if event["action"] != "annotate" or not event["user_metadata"].startswith(f"{MARK}phase "):
        return "", 0
    _, phase, step = event["user_metadata"].split(" ")
    return phase, int(step)

"""Reads a recording: which blocks were live at the peak, and what each of them is.

Pure functions over a :class:`~vramdoc.worker.history.Recording`; nothing here calls torch.
"""

from __future__ import annotations

import linecache
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vramdoc.report import CATEGORIES, Block, LineRow, ModuleRow, TimelinePoint
from vramdoc.report.measurement import Attributed
from vramdoc.worker.history import MARK, Context, Recording

LARGEST = 30
LINES = 60
TIMELINE_POINTS = 160

_NOWHERE = Context("", "", "", 0, "", "forward")
_ALLOCATION_UNIT = 512  # c10/core/AllocatorConfig.h, kMinBlockSize: every request is rounded up to it
_COMMUNICATION = ("c10d.", "_c10d_functional.", "fsdp.")
_LIBRARY_OPS = ("convolution", "cudnn", "miopen", "_ctc_loss")


@dataclass(slots=True)
class _Live:
    """One allocation from its first event to its free."""

    address: int
    bytes: int
    context: Context
    scratch: bool  # not a result of the operation that took it
    phase: str
    step: int
    begin: int  # index of the event
    end: int | None = None
    in_operation: bool = False  # freed by the operation that took it
    role: str = ""
    name: str = ""

    @property
    def rounded(self) -> int:
        return -(-self.bytes // _ALLOCATION_UNIT) * _ALLOCATION_UNIT


@dataclass(slots=True)
class _History:
    """The event list, read once."""

    blocks: list[_Live] = field(default_factory=list)
    backward: dict[int, int] = field(default_factory=dict)  # step -> event where its backward begins
    steps: dict[int, tuple[int, int]] = field(default_factory=dict)  # step -> first and last event
    phases: list[tuple[int, str]] = field(default_factory=list)  # event where a phase begins
    distributed: bool = False  # as in Recording


def attribute(recording: Recording, *, step: int, root: Path) -> Attributed:
    """What is live at the highest moment of ``step``; paths below ``root`` are given relative to it."""
    history = _read(recording)
    first, last = history.steps.get(step, (0, 0))
    peak = _peak_event(history, first, last)
    live = [block for block in history.blocks if block.begin <= peak and (block.end is None or block.end > peak)]
    category = {id(block): _category(block, history) for block in history.blocks}
    categories = dict.fromkeys(CATEGORIES, 0)
    for block in live:
        categories[category[id(block)]] += block.bytes
    live.sort(key=lambda block: (-block.bytes, block.begin))
    return Attributed(
        categories=categories,
        modules=_modules(live, category, recording.classes),
        lines=_lines(live, root),
        largest=tuple(_block(block, category[id(block)], root) for block in live[:LARGEST]),
        timeline=_timeline(history, category, first, last, peak),
    )


def _read(recording: Recording) -> _History:
    history = _History(distributed=recording.distributed)
    live: dict[int, _Live] = {}
    phase, step = "load", 0
    for index, event in enumerate(recording.events):
        action, address = event["action"], event.get("addr", 0)
        text: str = event["user_metadata"]
        if action == "alloc":
            number = int(text) if text else None
            context = _NOWHERE if number is None else recording.contexts[number]
            scratch = bool(context.op) and address not in recording.outputs.get(number or 0, ())
            live[address] = _Live(address, event["size"], context, scratch, phase, step, index)
            history.blocks.append(live[address])
        elif action == "free_requested" and address in live:
            block = live.pop(address)
            block.end = index
            block.in_operation = bool(text) and recording.contexts[int(text)] is block.context
        elif action == "annotate" and text.startswith(MARK + "phase "):
            _, phase, number_of_step = text.split(" ")
            step = int(number_of_step)
            history.phases.append((index, phase))
            if phase == "backward":
                history.backward.setdefault(step, index)
        elif action == "annotate" and text.startswith(MARK) and address in live:
            live[address].role, _, live[address].name = text[len(MARK) :].partition(" ")
        history.steps[step] = (history.steps.get(step, (index, index))[0], index)
    return history


def _changes(history: _History, last: int) -> Iterator[tuple[int, _Live, int]]:
    """Every change of the live set up to event ``last``: event, block, +1 or -1."""
    changes: list[tuple[int, _Live, int]] = []
    for block in history.blocks:
        if block.begin <= last:
            changes.append((block.begin, block, 1))
            if block.end is not None and block.end <= last:
                changes.append((block.end, block, -1))
    changes.sort(key=lambda change: change[0])
    return iter(changes)


def _peak_event(history: _History, first: int, last: int) -> int:
    total = best = 0
    at = first
    for index, block, sign in _changes(history, last):
        total += sign * block.rounded
        if index >= first and total > best:
            best, at = total, index
    return at


def _category(block: _Live, history: _History) -> str:
    """One of ``CATEGORIES``: what the block became, else where it came from and how long it lived."""
    if block.role in CATEGORIES:
        return block.role
    op = block.context.op
    if op.startswith(_COMMUNICATION) or (history.distributed and not op):
        return "communication"
    if block.scratch and (not block.in_operation or any(name in op for name in _LIBRARY_OPS)):
        return "workspace"
    if block.phase == "load":
        return "buffers"
    if block.phase == "optimizer":
        return "optimizer_temporaries"
    if block.scratch:
        return "temporaries"
    if block.context.kind == "recompute":
        return "activations"
    if block.phase in ("forward", "loss"):
        backward = history.backward.get(block.step)
        if backward is not None and (block.end is None or block.end >= backward):
            return "activations"
    return "temporaries"


def _module_of(block: _Live) -> str:
    if block.role in ("parameters", "gradients", "optimizer_state", "buffers") and block.name:
        return block.name.rpartition(".")[0]
    return block.context.module


_COLUMN = {
    "parameters": "parameter_bytes",
    "gradients": "gradient_bytes",
    "optimizer_state": "optimizer_state_bytes",
    "activations": "activation_bytes",
}


def _modules(live: list[_Live], category: dict[int, str], classes: dict[str, str]) -> tuple[ModuleRow, ...]:
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for block in live:
        column = _COLUMN.get(category[id(block)], "other_bytes")
        name = _module_of(block)
        while True:
            sums[name][column] += block.bytes
            if not name:
                break
            name = name.rpartition(".")[0]
    columns = (*_COLUMN.values(), "other_bytes")
    return tuple(
        ModuleRow(
            name=name,
            class_name=classes[name],
            total_bytes=sums[name].total(),
            **{column: sums[name][column] for column in columns},
        )
        for name in classes
        if name in sums
    )


def _lines(live: list[_Live], root: Path) -> tuple[LineRow, ...]:
    sizes: Counter[tuple[str, int, str]] = Counter()
    counts: Counter[tuple[str, int, str]] = Counter()
    for block in live:
        context = block.context
        if context.file and block.phase != "load":
            key = (context.file, context.line, context.function)
            sizes[key] += block.bytes
            counts[key] += 1
    return tuple(
        LineRow(
            file=relative(file, root),
            line=line,
            function=function,
            code=linecache.getline(file, line).strip(),
            bytes=size,
            blocks=counts[file, line, function],
        )
        for (file, line, function), size in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:LINES]
    )


def _block(block: _Live, category: str, root: Path) -> Block:
    return Block(
        bytes=block.bytes,
        category=category,
        phase=block.phase,
        op=block.context.op,
        module=block.name if block.role == "parameters" else _module_of(block),
        file=relative(block.context.file, root) if block.phase != "load" else "",
        line=block.context.line if block.phase != "load" else 0,
    )


def relative(file: str, root: Path) -> str:
    """``file`` as seen from the folder ``root`` where it lies below it."""
    path = Path(file)
    return str(path.relative_to(root)) if file and path.is_relative_to(root) else file


def _timeline(
    history: _History, category: dict[int, str], first: int, last: int, peak: int
) -> tuple[TimelinePoint, ...]:
    """The step in at most ``TIMELINE_POINTS`` stretches of equally many events, each at its highest moment."""
    span = max(last - first, 1)
    now: Counter[str] = Counter()
    total = 0
    best: dict[int, tuple[int, int, Counter[str]]] = {}
    for index, block, sign in _changes(history, last):
        now[category[id(block)]] += sign * block.bytes
        total += sign * block.rounded
        if index >= first:
            stretch = (index - first) * TIMELINE_POINTS // (span + 1)
            if stretch not in best or total > best[stretch][0] or index == peak:
                best[stretch] = (total, index, now.copy())
    return tuple(
        TimelinePoint(phase=_phase_at(history, index), allocated_bytes=total, categories=dict(+sums))
        for total, index, sums in (best[stretch] for stretch in sorted(best))
    )


def _phase_at(history: _History, event: int) -> str:
    current = "load"
    for index, phase in history.phases:
        if index > event:
            break
        current = phase
    return current

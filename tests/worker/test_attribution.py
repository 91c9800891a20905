"""The reading of a recording, on recordings small enough to check by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vramdoc.worker.attribution import attribute
from vramdoc.worker.history import Context, Recording

KIB = 1024


def context(op: str = "aten.mm", module: str = "block", kind: str = "forward", line: int = 3) -> Context:
    return Context(op, module, "/code/model.py", line, "forward", kind)


class Tape:
    """Writes a recording event by event."""

    def __init__(self) -> None:
        self.recording = Recording(classes={"": "Model", "block": "Block", "block.linear": "Linear"})

    def op(self, context: Context, *, outputs: tuple[int, ...] = ()) -> str:
        self.recording.contexts.append(context)
        number = len(self.recording.contexts) - 1
        self.recording.outputs[number] = outputs
        return str(number)

    def event(self, action: str, address: int = 0, size: int = 0, text: str = "") -> Tape:
        event: dict[str, Any] = {"action": action, "addr": address, "size": size, "user_metadata": text}
        self.recording.events.append(event)
        return self

    def alloc(self, address: int, size: int, text: str = "") -> Tape:
        return self.event("alloc", address, size, text)

    def free(self, address: int, text: str = "") -> Tape:
        return self.event("free_requested", address, 0, text)

    def mark(self, address: int, text: str) -> Tape:
        return self.event("annotate", address, 0, f"={text}")

    def phase(self, name: str, step: int = 0) -> Tape:
        return self.mark(0, f"phase {name} {step}")

    def categories(self, step: int = 0) -> dict[str, int]:
        found = attribute(self.recording, step=step, root=Path("/code")).categories
        return {name: size for name, size in found.items() if size}


def test_marks_say_what_a_block_has_become() -> None:
    """A parameter, its gradient and its state are told by their marks, whatever operation made them."""
    tape = Tape()
    tape.alloc(1, 4 * KIB).mark(1, "parameters block.linear.weight").phase("forward").phase("backward")
    backward = tape.op(context(kind="backward"), outputs=(2,))
    tape.alloc(2, 2 * KIB, backward).mark(2, "gradients block.linear.weight").phase("optimizer")
    state = tape.op(context("aten.zeros_like", ""), outputs=(3,))
    tape.alloc(3, 8 * KIB, state).mark(3, "optimizer_state block.linear.weight")
    assert tape.categories() == {"parameters": 4 * KIB, "gradients": 2 * KIB, "optimizer_state": 8 * KIB}


def test_what_lives_until_backward_is_an_activation() -> None:
    """Of two forward results the one freed before backward is temporary, the other is kept for it."""
    tape = Tape()
    tape.phase("forward")
    tape.alloc(1, KIB, tape.op(context(), outputs=(1,)))
    tape.alloc(2, 2 * KIB, tape.op(context(), outputs=(2,)))
    tape.free(1).phase("backward").free(2)
    assert tape.categories() == {"temporaries": KIB, "activations": 2 * KIB}


def test_scratch_of_an_operation() -> None:
    """What an operation keeps beyond its results is a workspace, what it frees itself is temporary, a
    convolution's own scratch is its library's workspace."""
    tape = Tape()
    tape.phase("forward")
    matmul = tape.op(context(), outputs=(1,))
    tape.alloc(9, 8 * KIB, matmul).alloc(1, KIB, matmul)
    sort = tape.op(context("aten.sort"), outputs=(2,))
    tape.alloc(3, KIB, sort).alloc(2, KIB, sort)
    convolution = tape.op(context("aten.convolution"), outputs=(4,))
    tape.alloc(5, 16 * KIB, convolution).alloc(4, KIB, convolution)
    tape.free(5, convolution).free(3, sort).phase("backward")
    assert tape.categories() == {"workspace": 24 * KIB, "activations": 3 * KIB, "temporaries": KIB}


def test_reused_address_is_another_block() -> None:
    """A mark counts for the block that lives at its moment, not for the next one at the same address."""
    tape = Tape()
    tape.phase("forward")
    tape.alloc(1, KIB, tape.op(context(), outputs=(1,))).mark(1, "inputs ").free(1)
    tape.alloc(1, 2 * KIB, tape.op(context(), outputs=(1,))).phase("backward")
    assert tape.categories() == {"activations": 2 * KIB}


def test_peak_is_found_within_its_step() -> None:
    """Only the asked step is searched, and blocks that an earlier step left alive count in it."""
    tape = Tape()
    tape.phase("forward", 0).alloc(1, 64 * KIB, tape.op(context(), outputs=(1,))).free(1)
    tape.alloc(2, KIB, tape.op(context(), outputs=(2,))).phase("backward", 0)
    tape.phase("forward", 1).alloc(3, KIB, tape.op(context(), outputs=(3,))).phase("backward", 1)
    assert tape.categories(step=1) == {"activations": 2 * KIB}


def test_recomputed_forward_is_activations() -> None:
    """Checkpointing runs a forward inside backward: its results are activations again."""
    tape = Tape()
    tape.phase("backward").alloc(1, KIB, tape.op(context(kind="recompute"), outputs=(1,)))
    assert tape.categories() == {"activations": KIB}


def test_modules_include_their_children() -> None:
    """A parent's row is the sum of its children's and its own."""
    tape = Tape()
    tape.alloc(1, 4 * KIB).mark(1, "parameters block.linear.weight").phase("forward")
    tape.alloc(2, KIB, tape.op(context(module="block"), outputs=(2,))).phase("backward")
    rows = {row.name: row for row in attribute(tape.recording, step=0, root=Path("/code")).modules}
    assert (rows["block.linear"].parameter_bytes, rows["block.linear"].total_bytes) == (4 * KIB, 4 * KIB)
    assert (rows["block"].parameter_bytes, rows["block"].activation_bytes) == (4 * KIB, KIB)
    assert rows[""].total_bytes == 5 * KIB
    assert rows[""].class_name == "Model"


def test_lines_add_up_and_are_relative() -> None:
    """Blocks of one source line are one row, and a path below the target's folder is short."""
    tape = Tape()
    tape.phase("forward")
    for address in (1, 2):
        tape.alloc(address, KIB, tape.op(context(line=7), outputs=(address,)))
    tape.alloc(3, 3 * KIB, tape.op(context(line=8), outputs=(3,))).phase("backward")
    lines = attribute(tape.recording, step=0, root=Path("/code")).lines
    assert [(row.file, row.line, row.bytes, row.blocks) for row in lines] == [
        ("model.py", 8, 3 * KIB, 1),
        ("model.py", 7, 2 * KIB, 2),
    ]


def test_timeline_reaches_the_peak_and_keeps_its_parts() -> None:
    """The highest point of the timeline is the peak, made of the same categories."""
    tape = Tape()
    tape.phase("forward")
    for address in range(1, 400):
        tape.alloc(address, 512, tape.op(context(), outputs=(address,)))
    tape.phase("backward")
    for address in range(1, 400):
        tape.free(address)
    found = attribute(tape.recording, step=0, root=Path("/code"))
    top = max(found.timeline, key=lambda point: point.allocated_bytes)
    assert top.allocated_bytes == 399 * 512
    assert top.categories == {"activations": 399 * 512}
    assert len(found.timeline) <= 160

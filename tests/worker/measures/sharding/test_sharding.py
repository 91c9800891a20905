"""Strategies over several GPUs: against the same programs by hand among real ranks, and against arithmetic."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from pathlib import Path

import pytest

from tests.worker.measures.sharding.conftest import HERE, Bench
from vramdoc.errors import MeasureError
from vramdoc.report.measurement import Measurement

FLOAT = 4  # bytes of a float32
BLOCK = [(48,), (48,), *[(48, 48)] * 4, (132, 48), (132,), (48, 132), (48,)]
ROOT = [(101, 48), (101, 48)]
GROUPS = (BLOCK, BLOCK, BLOCK, ROOT)  # what fully_shard communicates together
SHAPES = [shape for group in GROUPS for shape in group]
Shape = tuple[int, ...]

CASES = (
    "ddp",
    "ddp + ddp_bucket_view",
    "zero1",
    "zero2",
    "zero3",
    "checkpoint + zero3",
    "zero3 + fsdp_bf16",
    "zero3 + fsdp_offload",
    "tensor_parallel",
)


def peaks(measurement: Measurement) -> list[int]:
    return [measurement.peak_allocated_bytes, measurement.peak_reserved_bytes]


@pytest.mark.parametrize("case", CASES)
def test_saving_is_that_of_the_program_by_hand(case: str, bench: Bench, by_hand: dict[str, list[list[int]]]) -> None:
    """One rank alone, the measure applied to the target, against both of two real ranks: to the byte."""
    assert [peaks(bench.measure(case, rank=rank, size=2)) for rank in (0, 1)] == by_hand[case]


@pytest.mark.parametrize("case", ["ddp", "ddp + ddp_bucket_view"])
def test_same_for_a_convolutional_network(case: str, bench: Bench, by_hand: dict[str, list[list[int]]]) -> None:
    """Batch norm's buffers are exchanged too, and gradients kept as zeros lie in the buckets or beside them."""
    target = HERE.parent / "targets" / "convnet.py"
    found = [peaks(bench.measure(case, rank=rank, size=2, target=target)) for rank in (0, 1)]
    assert found == by_hand[f"convnet: {case}"]


@pytest.mark.parametrize(("case", "size", "local_size"), [("zero3", 4, 4), ("zero3", 8, 8), ("hsdp", 4, 2)])
def test_first_and_last_of_many_ranks(
    case: str, size: int, local_size: int, bench: Bench, by_hand: dict[str, list[list[int]]]
) -> None:
    """The same for more real ranks, on one machine and on two."""
    found = [peaks(bench.measure(case, rank=rank, size=size, local_size=local_size)) for rank in (0, size - 1)]
    ranks = by_hand[f"{case} on {size}"]
    assert found == [ranks[0], ranks[-1]]


def rounded(size: float) -> int:
    """What the caching allocator takes for ``size`` bytes: whole blocks of 512."""
    return ceil(size / 512) * 512


def share(shape: Shape, ranks: int) -> int:
    """Elements of a parameter on each of ``ranks``, split by rows and padded to the longest share."""
    return ceil(shape[0] / ranks) * (shape[1] if len(shape) > 1 else 1)


def own_share(shape: Shape, rank: int, ranks: int) -> int:
    """The same without padding: the last ranks have fewer rows, or none."""
    rows = ceil(shape[0] / ranks)
    return max(0, min(rows, shape[0] - rank * rows)) * (shape[1] if len(shape) > 1 else 1)


def total(sizes: Iterable[float]) -> int:
    return sum(rounded(size) for size in sizes)


def ends(measurement: Measurement) -> dict[str, int]:
    return {phase.name: phase.end_bytes for phase in measurement.phases}


def held(measurement: Measurement, workspace: int) -> tuple[int, int, int]:
    """Bytes of parameters, gradients and optimizer state that a step holds."""
    end = ends(measurement)
    loss_and_batch = rounded(FLOAT) + 64 * 64 * 8
    parameters = end["load"]
    states = end["after_step"] - parameters - workspace
    return parameters, end["optimizer"] - end["after_step"] - loss_and_batch, states


@pytest.fixture(scope="module")
def workspace(bench: Bench) -> int:
    """Bytes of cuBLAS's workspace: what one GPU holds between steps beside parameters and states."""
    return ends(bench.measure())["after_step"] - 3 * total(FLOAT * share(shape, 1) for shape in SHAPES)


@pytest.mark.parametrize("case", ["zero2", "zero3"])
@pytest.mark.parametrize(("rank", "size"), [(0, 2), (1, 2), (0, 8), (7, 8)])
def test_shares_of_fully_shard(case: str, rank: int, size: int, bench: Bench, workspace: int) -> None:
    """Parameters and gradients in padded rows, a group's gradients in one block; states without padding."""
    assert held(bench.measure(case, rank=rank, size=size), workspace) == (
        total(FLOAT * share(shape, size) for shape in SHAPES),
        total(FLOAT * sum(share(shape, size) for shape in group) for group in GROUPS),
        2 * total(FLOAT * own_share(shape, rank, size) for shape in SHAPES),
    )


def test_shares_of_two_machines(bench: Bench) -> None:
    """HSDP over 2 x 4 GPUs holds what ZeRO-3 holds over 4, and a machine more takes nothing from it."""
    hybrid, machine = bench.measure("hsdp", size=8, local_size=4), bench.measure("zero3", size=4)
    assert (ends(hybrid)["load"], ends(hybrid)["after_step"]) == (ends(machine)["load"], ends(machine)["after_step"])


def test_offloaded_shards_leave_the_gpu(bench: Bench, workspace: int) -> None:
    """Between steps nothing but the workspace is there."""
    assert ends(bench.measure("zero3 + fsdp_offload", size=2))["after_step"] == workspace


def test_offloaded_optimizer_is_seen(bench: Bench) -> None:
    """AdamW on the host takes longer than all else: it reads gradients, and reads and writes weights and two states."""
    found = bench.measure("zero3 + fsdp_offload", size=2, operations=True).operations
    on_host = sum(row.count * row.bytes for row in found if row.kind == "host" and row.phase == "optimizer")
    assert on_host > 7 * FLOAT * sum(own_share(shape, 0, 2) for shape in SHAPES)


def test_zero1_splits_the_states(bench: Bench) -> None:
    """Each state is on one rank: together they are one GPU's, and no rank has more than half and one tensor."""
    whole = total(FLOAT * share(shape, 1) for shape in SHAPES)
    both = [ends(bench.measure("zero1", rank=rank, size=2))["after_step"] for rank in (0, 1)]
    ddp = ends(bench.measure("ddp", size=2))["after_step"] - 2 * whole
    states = [end - ddp for end in both]
    assert sum(states) == 2 * whole
    assert max(states) <= whole + 2 * FLOAT * 101 * 48


def test_collectives_of_a_step(bench: Bench) -> None:
    """What the time on the link is reckoned from: padded bytes of each group, ranks, machines, what runs beside."""

    def found(case: str, local_size: int, size: int = 8) -> list[tuple[str, str, str, int, int, int, int, bool]]:
        rows = bench.measure(case, size=size, local_size=local_size, operations=True).collectives
        return [
            (row.op, row.phase, row.dtype, row.count, row.bytes, row.group_size, row.group_span, row.overlapped)
            for row in rows
        ]

    def group(number: int, ranks: int, item: int = FLOAT) -> int:
        return item * ranks * sum(share(shape, ranks) for shape in GROUPS[number])

    assert sorted(found("zero3 + fsdp_bf16", 8)) == sorted(
        [
            ("all_gather", "forward", "bf16", 1, group(3, 8, 2), 8, 1, True),
            ("all_gather", "forward", "bf16", 3, group(0, 8, 2), 8, 1, True),
            ("all_gather", "backward", "bf16", 3, group(0, 8, 2), 8, 1, True),
            ("reduce_scatter", "backward", "fp32", 3, group(0, 8), 8, 1, True),
            ("reduce_scatter", "backward", "fp32", 1, group(3, 8), 8, 1, True),
        ]
    )
    assert {row for row in found("hsdp", 4) if row[0] == "all_reduce"} == {
        ("all_reduce", "backward", "fp32", 3, group(0, 4) // 4, 2, 2, True),
        ("all_reduce", "backward", "fp32", 1, group(3, 4) // 4, 2, 2, True),
    }
    parameters = FLOAT * sum(share(shape, 1) for shape in SHAPES)
    reduced = found("ddp", 4)
    assert {row[0] for row in reduced} == {"all_reduce"}
    assert sum(row[3] * row[4] for row in reduced) == parameters
    assert {row[5:] for row in reduced} == {(8, 2, True)}
    sent = [row for row in found("zero1", 8) if row[0] == "broadcast"]
    assert sum(row[3] * row[4] for row in sent) == parameters
    assert {(row[1], row[7]) for row in sent} == {("optimizer", False)}
    activations = FLOAT * 64 * 64 * 48
    # Forward: behind attention and MLP. Backward: before query, key, value and up.
    assert found("tensor_parallel", 4, 4) == [
        ("all_reduce", "forward", "fp32", 6, activations, 4, 1, False),
        ("all_reduce", "backward", "fp32", 12, activations, 4, 1, False),
    ]


def test_peak_says_what_the_ranks_exchange(bench: Bench) -> None:
    """A person asks what fills a rank: buckets and gathered blocks are communication, ZeRO-1's states are states."""

    def categories(case: str) -> dict[str, int]:
        attributed = bench.measure(case, size=2, attributed=True).attributed
        assert attributed is not None
        return attributed.categories

    def requested(ranks: int, shapes: list[Shape] = SHAPES) -> int:
        return FLOAT * sum(share(shape, ranks) for shape in shapes)

    replicated = [categories(case) for case in ("ddp", "zero1")]
    assert [(each["parameters"], each["communication"]) for each in replicated] == [(requested(1),) * 2] * 2
    assert replicated[0]["optimizer_state"] == 2 * requested(1)
    assert 0.8 < replicated[1]["optimizer_state"] / requested(1) < 1.2
    kept = categories("zero2")
    assert (kept["parameters"], kept["optimizer_state"]) == (
        requested(2),
        2 * FLOAT * sum(own_share(shape, 0, 2) for shape in SHAPES),
    )
    assert kept["communication"] >= 2 * requested(2)  # every block whole, from its forward to its backward


@pytest.mark.parametrize("case", [*CASES, "hsdp"])
def test_printed_code_gives_the_promised_peak(case: str, bench: Bench, tmp_path: Path) -> None:
    """The code as it is shown, at the end of the target's file, run as a rank with nothing applied."""
    size, local_size = (4, 2) if case == "hsdp" else (2, 2)
    promised = bench.measure(case, rank=1, size=size, local_size=local_size)
    target = tmp_path / "written.py"
    code = {each.name: each.code for each in promised.applied}
    target.write_text((HERE / "small.py").read_text() + "\n\n" + "\n\n".join(code[name] for name in case.split(" + ")))
    assert peaks(bench.measure(rank=1, size=size, local_size=local_size, target=target)) == peaks(promised)


@pytest.mark.parametrize(
    ("case", "size", "local_size", "reason"),
    [
        ("zero3", 1, 1, "there is one GPU only"),
        ("hsdp", 4, 4, "one machine only"),
        ("fsdp_bf16", 2, 2, "nothing is sharded"),
        ("tensor_parallel", 4, 2, "one machine"),
        ("tensor_parallel", 5, 5, "cannot be split over 5 ranks"),
        ("ddp + zero3", 2, 2, "distributed already"),
        ("ddp", 12, 8, "12 ranks on machines of 8"),
    ],
)
def test_what_cannot_be_says_why(case: str, size: int, local_size: int, reason: str, bench: Bench) -> None:
    """The reason is shown instead of a saving."""
    with pytest.raises(MeasureError, match=reason):
        bench.measure(case, size=size, local_size=local_size)


def test_batch_grows_with_the_ranks(bench: Bench) -> None:
    """Each rank takes the target's batch: a person has to know before comparing."""
    assert "each of 8 GPUs takes 64 samples: the effective batch is 512" in bench.measure("zero3", size=8).warnings


def test_8b_model_is_never_whole(bench: Bench) -> None:
    """Llama 3 8B over 8 GPUs: a GPU loads its shards and one block, or the largest part outside, at a time."""
    target = HERE.parents[3] / "sample_models" / "llama3_8b.py"
    found = bench.measure("checkpoint + zero3", size=8, target=target)
    parameters = 8_030_261_248
    load = found.phases[0]
    head_and_tokens = 2 * 2 * 128256 * 4096
    assert load.end_bytes == pytest.approx(2 * parameters / 8, rel=1e-3)
    assert load.peak_bytes - load.end_bytes < head_and_tokens + (2 << 20)

"""Memory of one rank under every kind of parallelism, against arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from typing import Any

import pytest

FLOAT = 4  # bytes of a float32
BLOCK = [(48,), (48,), (144, 48), (144,), (48, 48), (131, 48), (131,), (48, 131), (48,)]
ROOT = [(101, 48), (101, 48)]
GROUPS = (BLOCK, BLOCK, ROOT)  # what fully_shard communicates together
WORLDS = ((0, 2), (1, 2), (0, 8), (3, 8), (7, 8), (0, 512), (255, 512), (511, 512))
Shape = tuple[int, ...]


@pytest.fixture(scope="module")
def figures(run_program: Callable[..., Any]) -> Any:
    """Case, then "rank/size", then the bytes of each thing."""
    return run_program("memory.py")


def rounded(size: float) -> int:
    """What the caching allocator takes for ``size`` bytes: whole blocks of 512."""
    return ceil(size / 512) * 512


def numel(shape: Shape) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def share(shape: Shape, size: int) -> int:
    """Elements of a parameter on each of ``size`` ranks, split by rows and padded to the longest share."""
    return ceil(shape[0] / size) * numel(shape[1:])


def own_share(shape: Shape, rank: int, size: int) -> int:
    """The same without padding: the last ranks have fewer rows, or none."""
    rows = ceil(shape[0] / size)
    return max(0, min(rows, shape[0] - rank * rows)) * numel(shape[1:])


def total(sizes: Iterable[float]) -> int:
    return sum(rounded(size) for size in sizes)


def each_world(found: dict[str, Any]) -> Iterable[tuple[int, int, dict[str, int]]]:
    assert list(found) == [f"{rank}/{size}" for rank, size in WORLDS]
    return [(rank, size, found[f"{rank}/{size}"]) for rank, size in WORLDS]


def test_ddp_adds_its_buckets(figures: dict[str, Any]) -> None:
    """DDP holds parameters, gradients and flat buckets of 1 MiB and more, whatever the world; the step no more."""
    parameters = gradients = 6 * rounded(300 * 300 * FLOAT)
    buckets = 2 * rounded(3 * 300 * 300 * FLOAT)  # three layers are the first to pass 1 MiB
    for _, _, found in each_world(figures["ddp"]):
        assert found == {"held": parameters + gradients + buckets, "step_peak": parameters + gradients + buckets}
    for _, _, found in each_world(figures["ddp_view"]):
        assert found == {"held": parameters + buckets, "step_peak": parameters + buckets}


@pytest.mark.parametrize(
    ("case", "unsharded_item"), [("fully_shard", 0), ("fully_shard_kept", FLOAT), ("fully_shard_bf16", 2)]
)
def test_fully_shard_splits_rows(figures: dict[str, Any], case: str, unsharded_item: int) -> None:
    """Shares of parameters and gradients are padded, optimizer states not; whole parameters stay if told to."""
    shapes = [shape for group in GROUPS for shape in group]
    for rank, size, found in each_world(figures[case]):
        assert found == {
            "parameters": total(FLOAT * share(shape, size) for shape in shapes),
            "gradients": total(FLOAT * sum(share(shape, size) for shape in group) for group in GROUPS),
            "states": 2 * total(FLOAT * own_share(shape, rank, size) for shape in shapes),
            "unsharded": total(unsharded_item * share(shape, size) * size for shape in shapes),
        }


def test_hsdp_shards_within_its_inner_mesh(figures: dict[str, Any]) -> None:
    """A mesh of W/2 x 2 shards over two ranks only, and the rank within the pair is the one that torchrun gives."""
    shapes = [shape for group in GROUPS for shape in group]
    for rank, _, found in each_world(figures["hsdp"]):
        assert found == {
            "shard_rank": rank % 2,
            "parameters": total(FLOAT * share(shape, 2) for shape in shapes),
            "gradients": total(FLOAT * sum(share(shape, 2) for shape in group) for group in GROUPS),
            "states": 2 * total(FLOAT * own_share(shape, rank % 2, 2) for shape in shapes),
            "unsharded": 0,
        }


def test_fsdp1_splits_one_flat_parameter(figures: dict[str, Any]) -> None:
    """The first FSDP lays all parameters end to end and splits that."""
    elements = sum(numel(shape) for group in GROUPS for shape in group)
    for _, size, found in each_world(figures["fsdp1"]):
        flat = rounded(FLOAT * ceil(elements / size))
        assert found == {"parameters": flat, "gradients": flat}


def test_zero_keeps_states_of_its_own_parameters(figures: dict[str, Any]) -> None:
    """Parameters go, largest first, to the rank that has least; its Adam states are there only, also when saving."""
    parameters = [3000, 900, 900, 900, 3000]
    for rank, size, found in each_world(figures["zero"]):
        loads: list[list[int]] = [[] for _ in range(size)]
        for elements in sorted(parameters, reverse=True):
            min(loads, key=sum).append(elements)
        assert found == {
            "gradients": total(FLOAT * elements for elements in parameters),
            "states": 2 * total(FLOAT * elements for elements in loads[rank]),
            "consolidated": 5 if rank == 0 else None,
            "left": 0,
        }


def test_tensor_parallel_splits_both_ways(figures: dict[str, Any]) -> None:
    """Column-wise splits weight and bias, row-wise the weight alone."""
    for _, size, found in each_world(figures["tensor_parallel"]):
        local = 1536 // size
        held = total(FLOAT * elements for elements in (local * 64, local, 64 * local, 64))
        assert found == {"parameters": held, "gradients": held}

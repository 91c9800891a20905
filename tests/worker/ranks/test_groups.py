"""Groups, objects and waits of a rank without peers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="module")
def found(run_program: Callable[..., Any]) -> Any:
    return run_program("groups.py")


@pytest.mark.parametrize(("rank", "size"), [(0, 2), (3, 8), (511, 512)])
def test_groups_have_the_sizes_and_ranks_of_the_real_ones(found: Any, rank: int, size: int) -> None:
    """Shares of memory follow from a group's size and this rank's place in it: [size, rank, first, last member]."""
    half, last = size // 2, size - 1
    start, pair = (0 if rank < half else half), rank // 2 * 2
    assert found[f"{rank}/{size}"]["groups"] == {
        "world": [size, rank, 0, last],
        "outer": [2, rank // half, rank % half, rank % half + half],
        "inner": [half, rank % half, start, start + half - 1],
        "pair": [2, rank % 2, pair, pair + 1],
        "split": [half, rank % half, start, start + half - 1],
        "evens": [half, rank // 2, 0, last - 1] if rank % 2 == 0 else None,
    }


@pytest.mark.parametrize(("rank", "size"), [(0, 2), (3, 8), (511, 512)])
def test_objects_are_the_ranks_own(found: Any, rank: int, size: int) -> None:
    """Programs go on with what they sent, take the device memory that torch would, and learn what needs peers."""
    objects = found[f"{rank}/{size}"]["objects"]
    assert objects["everyone"]
    assert objects["copies"]
    assert objects["at_root"]
    assert objects["told"] == [{"rank": rank}]
    assert objects["handed"] == [{"to": rank}]
    assert objects["refusal"].startswith(f"rank {rank} waits for objects of a peer")
    assert "need each rank as a process: start the ranks with: torchrun" in objects["refusal"]
    # torch: the pickle, its length, every rank's length, every rank's pickle, in blocks of 512 bytes.
    pickled = len(pickle.dumps({"rank": rank}))
    assert objects["peak"] == sum(-(-taken // 512) * 512 for taken in (pickled, 8, 8 * size, pickled * size))


def test_names_waits_and_the_end(found: Any) -> None:
    """A program sees the backends it asked for, its barriers end, and nothing stays behind after the block."""
    for world, size in (("0/2", 2), ("3/8", 8), ("511/512", 512)):
        assert found[world]["backends"] == {"default": "nccl", "gloo": "gloo", "both": "cpu:gloo,cuda:nccl"}
        assert found[world]["store"] == [size, size]
    assert found["after"] == {"initialized": False, "RANK": None}

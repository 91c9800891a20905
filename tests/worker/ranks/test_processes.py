"""Real ranks on null GPUs, and that one rank alone is the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def found(run_program: Callable[..., Any]) -> Any:
    return run_program("equal.py", devices=4)


@pytest.mark.parametrize("case", ["ddp 2", "ddp compiled 2", "fully_shard 2", "fully_shard 4", "fsdp1 2"])
def test_one_rank_alone_has_the_memory_of_the_real_one(found: Any, case: str) -> None:
    """Live, peak and reserved bytes of the first and the last rank: the claim that peers are not needed."""
    together, alone = found[case]["together"], found[case]["alone"]
    last = f"rank {len(together) - 1}"
    assert alone == {"rank 0": together["rank 0"], last: together[last]}


def test_objects_travel_between_real_ranks(found: Any) -> None:
    """Programs choose by what their peers told them; through device memory they would unpickle zeros."""
    common = {"everyone": [0, 1], "told": ["from 1"], "backend": "nccl"}
    assert found["talk"] == {
        "rank 0": common | {"at_last": None, "handed": [10], "passed": [None], "states": None},
        "rank 1": common | {"at_last": [0, 1], "handed": [11], "passed": ["shape"], "states": 4},
    }


def test_pipelines_run_among_real_ranks(found: Any) -> None:
    """A stage learns its input's shape from the one before it."""
    assert found["pipeline"] == {
        "rank 0": {"gradients": 4 * (64 * 256 + 256)},
        "rank 1": {"gradients": 4 * (256 * 32 + 32)},
    }


def test_a_script_runs_as_any_rank(run_program: Callable[..., Any]) -> None:
    """Unchanged, as ``__main__``, with its own folder to import from, and a clean end though it destroys nothing."""
    found = run_program("script.py", "-m", "vramdoc.worker.ranks", "--rank", "511", "--world-size", "512")
    expected = {"rank": 511, "seen": [511] * 512, "name": "__main__", "argv": [], "path": str(PROGRAMS)}
    assert found == expected


def test_torchrun_starts_real_ranks(run_program: Callable[..., Any]) -> None:
    """The usual launcher, with the module in front of the script."""
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-endpoint", "127.0.0.1:0")
    found = run_program("script.py", *launcher, "--rdzv-backend", "c10d", "-m", "vramdoc.worker.ranks", devices=2)
    assert (found["rank"], found["seen"]) == (1, [0, 1])

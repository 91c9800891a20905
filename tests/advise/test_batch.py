"""The largest batch, on steps whose memory is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from vramdoc.advise.batch import Largest, largest_batch
from vramdoc.advise.candidate import Candidate, Ledger, Result

ALLOWED = 1000


def largest(
    memory: Callable[[int], int], *, current: int = 8, most: int = 100_000, step: int = 1
) -> tuple[Largest, list[int]]:
    """The answer, and the sizes that were measured."""
    tried: list[int] = []

    def measure(candidates: Sequence[Candidate]) -> list[Result]:
        sizes = [each.batch_size or 0 for each in candidates]
        tried.extend(sizes)
        return [
            Result(candidate=each, reserved_bytes=memory(size)) for each, size in zip(candidates, sizes, strict=True)
        ]

    found = largest_batch(Ledger(measure), Candidate(), ALLOWED, current=current, most=most, step=step)
    return found, tried


@pytest.mark.parametrize("slope", [1, 7, 30, 130, 501, 999])
def test_proportional_memory(slope: int) -> None:
    """The largest size is exact, both its neighbours were measured, and it takes few runs."""
    found, tried = largest(lambda size: slope * size)
    assert found.size == ALLOWED // slope
    assert {found.size - 1, found.size + 1} - {0} <= set(tried)
    assert len(tried) <= 14
    assert not found.at_least


def test_one_that_does_not_grow_evenly() -> None:
    """Memory in steps of tiles, and a size that fits again above one that does not: the larger is taken."""
    found, _ = largest(lambda size: 1001 if size == 50 else 100 * (-(-size // 6)))
    assert found.size == 60


def test_none_fits() -> None:
    """Not even one sample: the answer is 0, not an error."""
    found, tried = largest(lambda size: 1000 + size)
    assert (found.size, found.result) == (0, None)
    assert 1 in tried


def test_end_of_the_search() -> None:
    """A model that is hardly there would take any batch: the search ends at what it may try, and says so."""
    found, tried = largest(lambda _size: 1, most=4096)
    assert (found.size, found.at_least) == (4096, True)
    assert max(tried) == 4096


def test_multiples_of_micro_batches() -> None:
    """A batch that is run in 4 parts grows by 4."""
    found, tried = largest(lambda size: 9 * size, step=4)
    assert found.size == 108
    assert all(size % 4 == 0 for size in tried)

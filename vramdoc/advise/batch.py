"""The largest batch that fits. Pure.

Memory grows nearly in proportion to the batch, so each round guesses from the two nearest sizes measured, halving what
is left where the guess does not. Two sizes are measured at a time. It is not monotone (workspaces, tilings and rounding
jump), so that in the end both neighbours of the answer are measured, and a larger one that fits after all is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vramdoc.advise.candidate import Candidate, Ledger, Result

_ROUNDS = 12
_GROWTH = 8  # no guess goes farther beyond what has been measured than this
_MOST_UPWARDS = 4  # sizes above one that does not fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """The largest batch that fits, on each GPU."""

    result: Result | None  # None: not even one sample fits
    size: int
    at_least: bool  # nothing too large was found up to the most that was tried


def largest_batch(
    ledger: Ledger, candidate: Candidate, allowed_bytes: int, *, current: int, most: int, step: int = 1
) -> Largest:
    """The largest multiple of ``step`` that fits, starting from a batch of ``current``, up to ``most``.

    ``step`` is the number of micro-batches that a batch is split into.
    """
    search = _Search(ledger, candidate, allowed_bytes, step)
    units, top = max(current // step, 1), max(most // step, 1)
    search.try_sizes([units])
    for _ in range(_ROUNDS):
        low, high = search.bracket()
        if (high is not None and high - low <= 1) or low >= top:
            break
        guess = search.guess(low, high, top)
        search.try_sizes([guess, guess + 1] if guess + 1 <= top else [guess])
    return search.answer(top)


class _Search:
    def __init__(self, ledger: Ledger, candidate: Candidate, allowed_bytes: int, step: int) -> None:
        self._ledger = ledger
        self._candidate = candidate
        self._allowed = allowed_bytes
        self._step = step
        self._found: dict[int, Result] = {}  # by size in steps

    def try_sizes(self, sizes: Sequence[int]) -> None:
        """Measures the batches of ``sizes`` steps."""
        fresh = [size for size in sizes if size >= 1 and size not in self._found]
        wanted = [replace(self._candidate, batch_size=size * self._step) for size in fresh]
        self._found.update(zip(fresh, self._ledger.measure(wanted), strict=True))

    def bracket(self) -> tuple[int, int | None]:
        """The largest size that fits (0: none) below the smallest above it that does not (None: none)."""
        low = max((size for size in self._found if self._fits(size)), default=0)
        return low, min((size for size in self._found if size > low), default=None)

    def guess(self, low: int, high: int | None, top: int) -> int:
        """Where the line through the two nearest sizes meets the limit, kept within what is open."""
        least, most = low + 1, min((high - 1) if high is not None else max(low, 1) * _GROWTH, top)
        nearest = sorted((size for size in self._found if self._found[size].ok), key=lambda size: abs(size - low))[:2]
        if len(nearest) < 2:
            return min(max(2 * low, least), most) if high is None else (least + most) // 2
        first, second = (self._found[size].reserved_bytes for size in nearest)
        slope = (second - first) / (nearest[1] - nearest[0])
        if slope <= 0:
            return (least + most) // 2 if high is not None else most
        aimed = nearest[0] + int((self._allowed - first) / slope)
        return min(max(aimed, least), most)

    def answer(self, top: int) -> Largest:
        """The largest size, once its neighbours have been measured too."""
        low, high = self.bracket()
        for _ in range(_MOST_UPWARDS):
            self.try_sizes([size for size in (low - 1, low + 1) if size <= top])
            low, high = self.bracket()
            if high == low + 1 or low >= top:
                break
        if low == 0:
            return Largest(result=None, size=0, at_least=False)
        return Largest(result=self._found[low], size=low * self._step, at_least=high is None)

    def _fits(self, size: int) -> bool:
        result = self._found[size]
        return result.ok and result.reserved_bytes <= self._allowed

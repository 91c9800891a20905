"""What a long run tells about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One piece of news; ``total`` is 0 where it is not known."""

    stage: str  # what is being done, for a person: "running steps"
    done: int = 0
    total: int = 0


Listener = Callable[[Progress], None]


def ignore(_news: Progress) -> None:
    """The listener of those who do not listen."""

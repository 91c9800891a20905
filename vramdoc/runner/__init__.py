"""Starts workers, speaks to them, and turns what they say into reports or errors."""

from vramdoc.runner.profile import profile
from vramdoc.runner.progress import Progress

__all__ = ["Progress", "profile"]

"""Finds what the user wants profiled."""

from vramdoc.target.locate import locate

__all__ = ["locate"]

"""Measures applied to a live training loop: each is one function that changes a ``Training``."""

from vramdoc.worker.measures.registry import apply, measure

__all__ = ["apply", "measure"]

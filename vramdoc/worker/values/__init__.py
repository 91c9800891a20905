"""Host shadows of small device tensors: what a program reads back from a null GPU."""

from vramdoc.worker.values.shadow import ValueShadow

__all__ = ["ValueShadow"]

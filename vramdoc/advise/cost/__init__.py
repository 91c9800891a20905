"""The time model: how long a step takes, from what it asks of the GPU. Nothing here is measured; nothing runs."""

from vramdoc.advise.cost.step import ratio, step_seconds
from vramdoc.advise.cost.values import Host, Interval, TimeEstimate

__all__ = ["Host", "Interval", "TimeEstimate", "ratio", "step_seconds"]

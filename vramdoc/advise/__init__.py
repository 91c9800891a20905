"""Advice: what to change in a training step, what each change saves and costs, all of it measured."""

from vramdoc.advise.asked import Asked, checked
from vramdoc.advise.hint import advisor
from vramdoc.advise.run import advise

__all__ = ["Asked", "advise", "advisor", "checked"]

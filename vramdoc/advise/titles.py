"""Names of choices and candidates for people. Pure."""

from __future__ import annotations

from vramdoc.advise import measures
from vramdoc.advise.candidate import Candidate
from vramdoc.report.measurement import Choice

_WORDS = {"parts": "{} parts", "divide": "by {}", "rank": "rank {}", "keep": "last {} trained"}


def title(choice: Choice, blocks: int) -> str:
    """``choice`` as in "activation checkpointing (7 of 12 blocks)", in a model that repeats ``blocks`` blocks."""
    details = [detail for name, value in choice.options.items() if (detail := _detail(name, value, blocks))]
    name = measures.by_name(choice.name).title
    return f"{name} ({', '.join(details)})" if details else name


def titles(candidate: Candidate, blocks: int) -> str:
    """All choices of ``candidate`` on one line; "as it is" where there are none."""
    return " + ".join(title(choice, blocks) for choice in candidate.choices) or "as it is"


def _detail(name: str, value: int | float | str | bool, blocks: int) -> str:
    if name == "block":
        return ""
    if name == "blocks":
        return f"{value} of {blocks} blocks"
    if name == "which":
        return f"{len(str(value).split(','))} of {blocks} blocks"
    return _WORDS.get(name, name.replace("_", " ") + " {}").format(value)

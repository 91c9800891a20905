"""The rules that stand in for values which a null GPU cannot know, as data.

A null GPU computes nothing. Where a program reads a value back from the device and that value does not derive
from host data, one of :data:`RULES` answers. Every rule states its reason, the user may choose another answer
(``--assume routing=skewed``), and where the answer decides how much memory the program takes, the rule names the
answers at the low and at the high end, so that the run can be repeated with both.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from vramdoc.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one kind of unknown value is answered."""

    name: str  # as in --assume name=choice
    question: str  # what the program asks for
    choices: tuple[str, ...]  # every answer there is
    default: str  # one of the choices
    reason: str  # why the default is the answer to expect
    low: str | None = None  # the choice that takes least memory; None where the answer does not scale memory
    high: str | None = None  # the choice that takes most memory


_ALL_RULES = (
    Rule(
        name="finite",
        question="is a computed number finite, and what is it?",
        choices=("finite", "nonfinite"),
        default="finite",
        reason="a run that works has finite numbers; guards against infinity and NaN let it pass",
    ),
    Rule(
        name="all",
        question="does a computed condition hold for all elements?",
        choices=("true", "false"),
        default="true",
        reason="programs ask this to validate, and valid data passes",
    ),
    Rule(
        name="any",
        question="does a computed condition hold for any element?",
        choices=("false", "true"),
        default="false",
        reason="programs ask this to find exceptions, and an ordinary step has none",
    ),
    Rule(
        name="equal",
        question="are two computed tensors equal?",
        choices=("true", "false"),
        default="true",
        reason="programs compare tensors to check that copies agree, and they do",
    ),
    Rule(
        name="condition",
        question="is a single computed condition true?",
        choices=("false", "true"),
        default="false",
        reason="a condition on one computed number (loss above a limit, converged) is seldom met in a given step",
    ),
    Rule(
        name="number",
        question="what is a computed whole number?",
        choices=("one", "zero"),
        default="one",
        reason="one neither empties what it sizes nor divides by zero",
    ),
    Rule(
        name="end_of_sequence",
        question="is a generated token the end of its sequence?",
        choices=("never", "at_once"),
        default="never",
        reason="generation that runs to its limit takes the most memory it can",
        low="at_once",
        high="never",
    ),
    Rule(
        name="routing",
        question="which entries does a choice by computed scores take (top-k, argmax, sort)?",
        choices=("balanced", "skewed"),
        default="balanced",
        reason="routers are trained to balance their experts, so every entry is taken equally often",
        low="balanced",
        high="skewed",
    ),
    Rule(
        name="index",
        question="how many elements does a computed mask select?",
        choices=("full", "half", "one", "empty"),
        default="full",
        reason="memory must hold every element that may be selected",
        low="one",
        high="full",
    ),
    Rule(
        name="proposals",
        question="how many proposals does non-maximum suppression keep?",
        choices=("full", "half", "one", "empty"),
        default="full",
        reason="a detector must hold its full quota of proposals, and early in training it meets the quota",
        low="one",
        high="full",
    ),
    Rule(
        name="distinct",
        question="how many distinct values does a computed tensor hold?",
        choices=("all", "one"),
        default="all",
        reason="memory must hold as many distinct values as there are elements",
        low="one",
        high="all",
    ),
    Rule(
        name="random",
        question="which numbers does the device's random generator draw?",
        choices=("drawn", "unknown"),
        default="drawn",
        reason="one draw of the same distribution is as good as another; it is made on the host, from a fixed seed",
    ),
    Rule(
        name="ranks",
        question="what do the other ranks hold?",
        choices=("alike", "unknown"),
        default="alike",
        reason="ranks run the same program on batches of the same shape",
    ),
)


class UsesRule(Protocol):
    """What :func:`alternatives` needs of a :class:`vramdoc.report.model.Assumption`."""

    @property
    def rule(self) -> str:
        """The name of the rule that answered."""


RULES: Mapping[str, Rule] = {rule.name: rule for rule in _ALL_RULES}
"""Every rule by its name, in the order in which they are listed to a user."""


def parse(texts: Iterable[str]) -> dict[str, str]:
    """``["routing=skewed"]`` as ``{"routing": "skewed"}``; a later text wins over an earlier one.

    Raises :class:`UsageError` for a text without ``=``, an unknown rule or an unknown choice.
    """
    chosen: dict[str, str] = {}
    for text in texts:
        name, equals, choice = (part.strip() for part in text.partition("="))
        if not equals:
            raise UsageError(f"not an assumption: {text!r}", hint="write a rule and a choice: routing=skewed")
        chosen[name] = choice
    check(chosen)
    return chosen


def check(chosen: Mapping[str, str]) -> None:
    """Raises :class:`UsageError` where ``chosen`` names a rule or a choice that does not exist."""
    for name, choice in chosen.items():
        rule = RULES.get(name)
        if rule is None:
            raise UsageError(f"unknown assumption: {name!r}", hint=_suggest(name, tuple(RULES)))
        if choice not in rule.choices:
            raise UsageError(f"unknown choice for {name}: {choice!r}", hint=_suggest(choice, rule.choices))


def choices(chosen: Mapping[str, str]) -> dict[str, str]:
    """The choice for every rule: what the user has ``chosen``, and the defaults."""
    return {name: chosen.get(name, rule.default) for name, rule in RULES.items()}


def alternatives(
    assumptions: Iterable[UsesRule], chosen: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]] | None:
    """The choices for the low and for the high end of the range, or ``None`` where there is no range.

    Only rules that were used (``assumptions``) and that the user has not set (``chosen``) move; what the user has
    set holds in both. Which end gives less memory is what the rules expect, not a proof: a caller takes the least
    and the most of all its runs. A run at an end may fail (an empty selection): then that end stays unknown.
    """
    low, high = dict(chosen), dict(chosen)
    for name in sorted({assumption.rule for assumption in assumptions} - chosen.keys()):
        rule = RULES[name]
        if rule.low is not None and rule.high is not None:
            low[name], high[name] = rule.low, rule.high
    return (low, high) if low != high else None


def _suggest(text: str, known: tuple[str, ...]) -> str:
    nearest = difflib.get_close_matches(text, known, n=1, cutoff=0.5)
    listed = "one of " + ", ".join(known)
    return f"did you mean {nearest[0]}? ({listed})" if nearest else listed

"""The rules as data: what a user may say, and which ends a range has."""

from __future__ import annotations

import pytest

from vramdoc.assumptions import RULES, alternatives, check, choices, parse
from vramdoc.errors import UsageError
from vramdoc.report.model import Assumption


def used(rule: str) -> Assumption:
    return Assumption(op="aten.nonzero", file="model.py", line=1, rule=rule, reads=1)


def test_every_rule_is_consistent() -> None:
    """A default or an end that is no choice would break every run that uses the rule."""
    for name, rule in RULES.items():
        assert rule.name == name
        assert len(set(rule.choices)) == len(rule.choices) >= 2
        assert rule.default in rule.choices
        assert rule.reason
        assert rule.question.endswith("?")
        assert (rule.low is None) == (rule.high is None)
        assert {rule.low, rule.high} <= {None, *rule.choices}


def test_parse_reads_what_the_user_writes() -> None:
    """The command line hands over texts; the last word on a rule wins."""
    assert parse([]) == {}
    assert parse(["routing=skewed", " index = half "]) == {"routing": "skewed", "index": "half"}
    assert parse(["routing=skewed", "routing=balanced"]) == {"routing": "balanced"}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("routing", "not an assumption: 'routing'", "routing=skewed"),
        ("rooting=skewed", "unknown assumption: 'rooting'", "did you mean routing?"),
        ("routing=skewd", "unknown choice for routing: 'skewd'", "did you mean skewed?"),
        ("routing=", "unknown choice for routing: ''", "one of balanced, skewed"),
    ],
)
def test_parse_refuses_with_the_nearest_name(text: str, message: str, hint: str) -> None:
    """A typing error must not silently leave the default in force."""
    with pytest.raises(UsageError) as caught:
        parse([text])
    assert caught.value.message == message
    assert hint in caught.value.hint


def test_choices_fills_in_the_defaults() -> None:
    """The worker gets an answer for every rule."""
    every = choices({"routing": "skewed"})
    assert every.keys() == RULES.keys()
    assert every["routing"] == "skewed"
    assert every["finite"] == "finite"
    check(every)


def test_alternatives_move_only_rules_that_were_used_and_not_set() -> None:
    """A range over a rule that the program never met, or that the user has fixed, would be untrue."""
    assert alternatives([], {}) is None
    assert alternatives([used("finite"), used("all")], {}) is None
    assert alternatives([used("routing")], {"routing": "skewed"}) is None
    low, high = alternatives([used("routing"), used("index"), used("finite")], {"any": "true"}) or ({}, {})
    assert low == {"any": "true", "routing": "balanced", "index": "one"}
    assert high == {"any": "true", "routing": "skewed", "index": "full"}

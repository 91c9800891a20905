"""Budgets and tolerances as people write them."""

from __future__ import annotations

import pytest

from vramdoc.errors import UsageError
from vramdoc.gate import Amount, Tolerance, parse_limit, parse_metric, parse_tolerance


@pytest.mark.parametrize(
    ("text", "whole", "size"),
    [
        ("22GiB", 0, 22 * 1024**3),
        (" 1.5 GB ", 0, 1_500_000_000),
        ("80%", 1000, 800),
        ("12.5 %", 1000, 125),
        ("100%", 42_298_834_944, 42_298_834_944),
    ],
)
def test_limits(text: str, whole: int, size: int) -> None:
    """A size is itself; a share is one of the GPU."""
    assert parse_limit(text).of(whole) == size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("22", "has no unit"),
        ("0", "has no unit"),
        ("0GiB", "allows nothing"),
        ("0%", "allows nothing"),
        ("120%", "more than the whole GPU"),
        ("-3GiB", "neither a size nor a share"),
        ("22 potatoes", "neither a size nor a share"),
        ("80%GiB", "neither"),
        ("", "neither"),
        ("nan", "neither"),
        ("1e9B", "neither"),
    ],
)
def test_nonsense_limits(text: str, message: str) -> None:
    """A budget that is misread would pass everything or nothing."""
    with pytest.raises(UsageError, match=message) as caught:
        parse_limit(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("peak:3%", "total", "peak"),
        ("growth:0", "total", "growth"),
        ("activations:200MiB", "category", "activations"),
        ("optimizer_state:1%", "category", "optimizer_state"),
        ("optimizer:1%", "phase", "optimizer"),
        ("phase:backward:1GiB", "phase", "backward"),
        ("blocks.*.mlp:3%", "module", "blocks.*.mlp"),
        ("module:loss:3%", "module", "loss"),
        (" loss : 3% ", "phase", "loss"),
    ],
)
def test_tolerances(text: str, kind: str, name: str) -> None:
    """A name alone is a total, a category, a phase or a module, in this order; before a colon stands which."""
    tolerance = parse_tolerance(text)
    assert (tolerance.kind, tolerance.name) == (kind, name)


def test_tolerance_amounts() -> None:
    """Nothing at all needs no unit."""
    assert parse_tolerance("peak:0") == Tolerance(kind="total", name="peak", amount=Amount(text="0", bytes=0))
    assert parse_tolerance("peak:0B").amount.of(10**9) == 0
    assert parse_tolerance("peak:250%").amount.of(100) == 250


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("peak", "not a tolerance", "write WHAT:AMOUNT"),
        (":3%", "not a tolerance", "write WHAT:AMOUNT"),
        ("peak:3", "has no unit", "write a size"),
        ("peak:lots", "neither a size nor a share", "write a size"),
        ("phase:backwards:3%", "no phase is called 'backwards'", "did you mean backward?"),
        ("categroy:activations:3%", "unknown kind 'categroy'", "did you mean category?"),
    ],
)
def test_nonsense_tolerances(text: str, message: str, hint: str) -> None:
    """A tolerance that names nothing would never fail."""
    with pytest.raises(UsageError, match=message) as caught:
        parse_tolerance(text)
    assert caught.value.hint.startswith(hint)


def test_metrics() -> None:
    """The three, and a suggestion for a fourth."""
    assert parse_metric("device") == "device"
    with pytest.raises(UsageError, match="'reservd'") as caught:
        parse_metric("reservd")
    assert caught.value.hint == "did you mean reserved?"

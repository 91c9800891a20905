"""Whole steps: the host's rate, transfers, and how two steps compare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vramdoc import hardware
from vramdoc.advise.cost import Host, TimeEstimate, ratio, step_seconds
from vramdoc.advise.cost.efficiencies import calibrated
from vramdoc.report.operations import Collective, Operation

A100 = hardware.find("a100-80")
ADD = Operation(
    op="aten.add", phase="forward", kind="elementwise", dtype="fp32", count=10, flops=0, bytes=2**30, launches=1.0
)
PRODUCT = Operation(
    **{"op": "aten.mm", "phase": "backward", "kind": "matmul", "dtype": "bf16", "count": 10, "launches": 1.0},
    **{"flops": 2 * 8192**3, "bytes": 3 * 2 * 8192**2, "shape": (1, 8192, 8192, 8192)},
)


def estimate(*rows: Operation, collectives: tuple[Collective, ...] = (), **options: Any) -> TimeEstimate:
    """A step of ``rows`` on an A100."""
    return step_seconds(rows, collectives, A100, **options)


def test_parts_add_up() -> None:
    """A person who reads where the time goes must find all of it."""
    reduce = Collective(op="all_reduce", phase="backward", dtype="fp32", count=4, bytes=2**26, group_size=8)
    copy = replace(ADD, op="to_gpu", kind="host_copy", bytes=2**28)
    found = estimate(ADD, PRODUCT, copy, collectives=(reduce,))
    assert sum(found.parts.values()) == pytest.approx(found.seconds)
    assert set(found.parts) == {"elementwise fp32", "matmul bf16", "communication", "transfer"}
    assert found.low < found.seconds < found.high
    assert found.launches == 30


def test_a_step_is_at_least_what_the_host_issues() -> None:
    """Many small kernels take the host's time, not the GPU's: larger ones in their place are free."""
    small = replace(ADD, count=10_000, bytes=1024)
    slow = Host(seconds_per_operation=20e-6, seconds_per_view=2e-6, seconds_per_launch=5e-6)
    bound = estimate(small, host=slow)
    assert bound.seconds == pytest.approx(10_000 * 25e-6)
    assert bound.host_seconds == pytest.approx(bound.seconds)
    assert estimate(replace(small, bytes=65536), host=slow).seconds == pytest.approx(bound.seconds)
    assert estimate(small, replace(ADD, kind="view", launches=0.0, count=1000), host=slow).seconds == pytest.approx(
        bound.seconds + 1000 * 2e-6
    )


def test_the_host_runs_ahead() -> None:
    """What the GPU has left of one phase hides the slow issue of the next."""
    optimizer = replace(ADD, phase="optimizer", count=1000, bytes=1024)
    slow = Host(seconds_per_operation=30e-6, seconds_per_view=0.0, seconds_per_launch=0.0)
    alone = estimate(optimizer, host=slow)
    both = estimate(replace(PRODUCT, phase="forward"), optimizer, host=slow)
    work = estimate(replace(PRODUCT, phase="forward"), host=slow)
    assert both.seconds < alone.seconds + work.seconds - 0.02


def test_transfers_at_the_host_link() -> None:
    """An offloaded byte takes the link's time, unless it moves beside the computation."""
    rate = calibrated().links["transfer"] * A100.host_link.bytes_per_second
    waited = replace(ADD, op="to_host", kind="host_copy", phase="backward", count=1, bytes=10**9)
    base = estimate(PRODUCT).seconds
    assert estimate(PRODUCT, waited).seconds - base == pytest.approx(10**9 / rate, rel=0.01)
    beside = replace(waited, overlapped=True)
    assert estimate(PRODUCT, beside).seconds == pytest.approx(base, rel=0.01)
    much = estimate(PRODUCT, replace(beside, bytes=10**11)).seconds
    assert much == pytest.approx(10**11 / rate, rel=0.02), "more than the computation hides"
    on_host = replace(waited, op="aten.add", kind="host", launches=0.0)
    assert estimate(PRODUCT, on_host).seconds - base == pytest.approx(
        10**9 / calibrated().host["bytes_per_second"], rel=0.01
    )


def test_ratio_knows_what_cancels() -> None:
    """Equal steps differ by nothing; a change of a small part is better known than one of everything."""
    base = estimate(ADD, PRODUCT)
    same = ratio(base, estimate(ADD, PRODUCT))
    assert (same.value, same.low, same.high) == (1, 1, 1)

    def width(changed: TimeEstimate) -> float:
        interval = ratio(base, changed)
        assert interval.low < interval.value < interval.high
        return interval.high / interval.low

    slightly = estimate(replace(ADD, count=12), PRODUCT)
    wholly = estimate(ADD, replace(PRODUCT, dtype="tf32"), replace(PRODUCT, kind="attention", op="flash"))
    assert width(slightly) < width(wholly)
    doubled = ratio(base, estimate(replace(ADD, count=20), replace(PRODUCT, count=20)))
    assert doubled.value == pytest.approx(2)
    assert doubled.high / doubled.low < width(wholly), "twice the same work is twice the time"

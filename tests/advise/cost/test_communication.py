"""Collectives on a ring, and what of them the computation hides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vramdoc import hardware
from vramdoc.advise.cost.communication import collective_seconds, exposed_seconds
from vramdoc.advise.cost.efficiencies import calibrated
from vramdoc.report.operations import Collective

E = calibrated()
NVLINK = hardware.find_link("nvlink-3-x12")
ETHERNET = hardware.find_link("ethernet-100")
REDUCE = Collective(op="all_reduce", phase="backward", dtype="fp32", count=1, bytes=2**30, group_size=8)


def seconds(collective: Collective) -> float:
    """One call between GPUs joined by NVLink, machines by Ethernet."""
    return collective_seconds(collective, NVLINK, ETHERNET, E)


def test_ring_carries_its_bytes() -> None:
    """(n - 1) / n of the buffer once for a gather or a scatter, twice for an all-reduce, over the ring's share."""
    rate = E.links["ring"] * NVLINK.bytes_per_second
    assert seconds(REDUCE) == pytest.approx(2 * 7 / 8 * 2**30 / rate, rel=0.02)
    gather, scatter = (seconds(replace(REDUCE, op=op)) for op in ("all_gather", "reduce_scatter"))
    assert gather == scatter == pytest.approx(seconds(REDUCE) / 2)
    assert seconds(replace(REDUCE, group_size=1)) == 0


def test_machines_are_joined_by_their_own_link() -> None:
    """A group on several machines is as fast as what leaves one of them."""
    across = seconds(replace(REDUCE, group_size=16, group_span=2))
    assert across == pytest.approx(2 * 15 / 16 * 2**30 / (E.links["ring"] * ETHERNET.bytes_per_second), rel=0.02)


def test_only_the_exposed_part_counts() -> None:
    """Buckets hide behind the rest of the backward pass; the last has nothing left to hide behind."""
    buckets = replace(REDUCE, count=10, bytes=2**28)
    one = seconds(buckets)
    total, exposed = exposed_seconds([buckets], {"backward": 1.0}, NVLINK, ETHERNET, E)
    assert total == pytest.approx(10 * one)
    assert exposed == pytest.approx(one + E.links["contention"] * 9 * one)

    _, short = exposed_seconds([buckets], {"backward": 2 * one}, NVLINK, ETHERNET, E)
    assert short == pytest.approx(8 * one + E.links["contention"] * 2 * one), "behind two buckets' time hide two"
    _, waited = exposed_seconds([replace(buckets, overlapped=False)], {"backward": 1.0}, NVLINK, ETHERNET, E)
    assert waited == pytest.approx(10 * one), "what the program waits for hides nowhere"
    _, elsewhere = exposed_seconds([buckets], {"forward": 1.0}, NVLINK, ETHERNET, E)
    assert elsewhere == pytest.approx(10 * one), "nor behind another phase"

"""The time of collectives on a ring, and what of it computation hides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vramdoc.advise.cost.efficiencies import Efficiencies
from vramdoc.hardware import Link
from vramdoc.report.operations import Collective

_ROUNDS = {"all_reduce": 2.0}
"""How often a ring carries (n - 1) / n of the buffer; once where nothing is said."""


def collective_seconds(collective: Collective, link: Link, node_link: Link, efficiencies: Efficiencies) -> float:
    """Seconds of one call by a ring: (n - 1) / n of its bytes go over the slowest link, twice for an all-reduce.

    The ring of a group on several machines leaves each machine once, and as many rings run as there are ways out:
    ``node_link`` is all that leaves one machine.
    """
    ranks = collective.group_size
    if ranks < 2:
        return 0.0
    rounds = _ROUNDS.get(collective.op, 1.0)
    rate = link.bytes_per_second
    if collective.group_span > 1:
        rate = min(rate, node_link.bytes_per_second)
    hops = rounds * (math.log2(ranks) if collective.group_span > 1 else ranks - 1)
    wire = rounds * (ranks - 1) / ranks * collective.bytes / (efficiencies.links["ring"] * rate)
    return wire + hops * efficiencies.links["hop_seconds"]


def exposed_seconds(
    collectives: Sequence[Collective], computing: Mapping[str, float], link: Link, node_link: Link, e: Efficiencies
) -> tuple[float, float]:
    """Seconds of all collectives, and of these what lengthens the step. ``computing`` is seconds by phase.

    FSDP gathers a block's parameters while the block before computes, and reduces its gradients while the next
    one's are made; DDP reduces a bucket while later gradients are made. So in each phase one call, the first gather
    or the last reduction, has nothing to hide behind, and the others hide behind what is computed. What hides still
    takes multiprocessors and bandwidth from the computation.
    """
    total = exposed = 0.0
    for phase in dict.fromkeys(c.phase for c in collectives):
        rows = [(c, collective_seconds(c, link, node_link, e)) for c in collectives if c.phase == phase]
        total += sum(c.count * seconds for c, seconds in rows)
        exposed += sum(c.count * seconds for c, seconds in rows if not c.overlapped)
        beside = [(c, seconds) for c, seconds in rows if c.overlapped]
        if beside:
            alone = max(seconds for _, seconds in beside)
            hideable = sum(c.count * seconds for c, seconds in beside) - alone
            hidden = min(hideable, computing.get(phase, 0.0))
            exposed += alone + (hideable - hidden) + e.links["contention"] * hidden
    return total, exposed

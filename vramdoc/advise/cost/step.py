"""The time of a step and how two steps compare."""

from __future__ import annotations

from collections.abc import Sequence

from vramdoc.advise.cost.values import Host, Interval, TimeEstimate
from vramdoc.hardware import Gpu, Link
from vramdoc.report.operations import Collective, Operation


def step_seconds(
    operations: Sequence[Operation],
    collectives: Sequence[Collective],
    gpu: Gpu,
    *,
    link: Link | None = None,
    node_link: Link | None = None,
    host: Host | None = None,
) -> TimeEstimate:
    """The modelled time of one step of one rank on ``gpu``.

    ``link`` joins the GPUs of one machine (default: the GPU's own peer link, else its host link), ``node_link`` the
    machines (default: 400 Gbit/s Ethernet a machine); ``host`` is how fast the host issues (default: calibrated).
    """
    raise NotImplementedError


def ratio(base: TimeEstimate, changed: TimeEstimate) -> Interval:
    """``changed`` over ``base``: above 1 is slower. What both steps share cancels, so it is narrower than either."""
    raise NotImplementedError

"""The time of a step and how two steps compare."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from vramdoc.advise.cost.communication import exposed_seconds
from vramdoc.advise.cost.efficiencies import Efficiencies, calibrated
from vramdoc.advise.cost.kernels import kernel_seconds
from vramdoc.advise.cost.values import Host, Interval, TimeEstimate
from vramdoc.hardware import Gpu, Link, find_link
from vramdoc.report.operations import Collective, Operation

_DEFAULT_NODE_LINK = "ethernet-400"
_FOUR_OF_FIVE = 1.2816  # standard deviations on either side that hold 80 % of a normal distribution


def step_seconds(
    operations: Sequence[Operation],
    collectives: Sequence[Collective],
    gpu: Gpu,
    *,
    link: Link | None = None,
    node_link: Link | None = None,
    host: Host | None = None,
    efficiencies: Efficiencies | None = None,
) -> TimeEstimate:
    """The modelled time of one step of one rank on ``gpu``.

    ``link`` joins the GPUs of one machine (default: the GPU's own peer link, else its host link); ``node_link`` is
    all that leaves one machine (default: 400 Gbit/s Ethernet); ``host`` is how fast the host issues (default:
    calibrated, as ``efficiencies`` are).
    """
    e = efficiencies or calibrated()
    host = host or _host(e)
    parts: dict[str, float] = defaultdict(float)
    computing: dict[str, float] = defaultdict(float)  # seconds by phase
    issuing: dict[str, float] = defaultdict(float)
    for operation in operations:
        seconds = operation.count * kernel_seconds(operation, gpu, e)
        if seconds:
            parts[_part(operation)] += seconds
        computing[operation.phase] += seconds
        issuing[operation.phase] += operation.count * _issue_seconds(operation, host)
    gpu_seconds = sum(computing.values())
    waiting = _finish(computing, issuing) - gpu_seconds
    transfers, exposed_transfers = _transfers(operations, computing, gpu, e)
    on_host = sum(o.count * o.bytes for o in operations if o.kind == "host") / e.host["bytes_per_second"]
    communication, exposed = exposed_seconds(
        collectives, computing, link or gpu.peer_link or gpu.host_link, node_link or find_link(_DEFAULT_NODE_LINK), e
    )
    ranks = max((c.group_size for c in collectives), default=1)
    exposed += e.links["imbalance"] * math.log2(ranks) * gpu_seconds
    # What the host cannot issue in time leaves gaps in which communication runs for nothing.
    exposed = max(0.0, exposed - waiting)
    parts |= {"host": waiting + on_host, "communication": exposed, "transfer": exposed_transfers}
    seconds = gpu_seconds + waiting + on_host + exposed + exposed_transfers
    spread = math.exp(_FOUR_OF_FIVE * e.error["step"])
    return TimeEstimate(
        seconds=seconds,
        low=seconds / spread,
        high=seconds * spread,
        parts={name: value for name, value in parts.items() if value},
        gpu_seconds=gpu_seconds,
        host_seconds=sum(issuing.values()) + on_host,
        communication_seconds=communication,
        exposed_communication_seconds=exposed,
        transfer_seconds=transfers,
        launches=round(sum(o.count * o.launches for o in operations)),
    )


def ratio(base: TimeEstimate, changed: TimeEstimate, *, efficiencies: Efficiencies | None = None) -> Interval:
    """``changed`` over ``base``: above 1 is slower. In the interval lie four of five of the calibrated pairs.

    Each part of a step (its products, its copies, its communication, ...) is off by a factor of its own, the same
    one before and after. So what both steps share cancels, and what differs are the parts' shares:
    d log(ratio) = sum over parts of (share after - share before) x error of the part.
    """
    error = (efficiencies or calibrated()).error
    value = changed.seconds / base.seconds
    deviation = math.hypot(error["ratio"], error["part"] * share_shift(base, changed))
    spread = 1.0 if base.parts == changed.parts else math.exp(_FOUR_OF_FIVE * deviation)
    return Interval(value=value, low=value / spread, high=value * spread)


def share_shift(base: TimeEstimate, changed: TimeEstimate) -> float:
    """How far the shares of two steps' parts lie apart: the length of the vector of their differences.

    Parts of one kind count together: what is off about a product in fp32 is mostly off about it in bf16 too.
    """
    shares: dict[str, float] = defaultdict(float)
    for estimate, sign in ((base, -1.0), (changed, 1.0)):
        for name, seconds in estimate.parts.items():
            shares[name.partition(" ")[0]] += sign * seconds / estimate.seconds
    return math.hypot(*shares.values())


def _host(e: Efficiencies) -> Host:
    return Host(
        seconds_per_operation=e.host["operation_seconds"],
        seconds_per_view=e.host["view_seconds"],
        seconds_per_launch=e.host["launch_seconds"],
    )


def _part(operation: Operation) -> str:
    layout = " channels last" if operation.channels_last else ""
    return f"{operation.kind} {operation.dtype}{layout}"


def _issue_seconds(operation: Operation, host: Host) -> float:
    """What the host needs for one call, Python and dispatcher included."""
    if operation.kind == "view":
        return host.seconds_per_view
    return host.seconds_per_operation + operation.launches * host.seconds_per_launch


def _finish(computing: Mapping[str, float], issuing: Mapping[str, float]) -> float:
    """When the GPU is done: the host issues phase after phase and runs ahead; the GPU cannot begin before it is told.

    The largest, over all phases, of what the host has issued by its end and what the GPU then still has to do.
    """
    finish = left = sum(computing.values())
    issued = 0.0
    for phase, seconds in computing.items():
        issued += issuing[phase]
        left -= seconds
        finish = max(finish, issued + left)
    return finish


def _transfers(
    operations: Sequence[Operation], computing: Mapping[str, float], gpu: Gpu, e: Efficiencies
) -> tuple[float, float]:
    """Seconds of all copies between host and GPU, and of these what no computation of their phase hides."""
    rate = e.links["transfer"] * gpu.host_link.bytes_per_second
    total = exposed = 0.0
    beside: dict[tuple[str, str], float] = defaultdict(float)
    for operation in operations:
        if operation.kind == "host_copy":
            seconds = operation.count * operation.bytes / rate
            total += seconds
            if operation.overlapped:
                beside[operation.phase, operation.op] += seconds  # both directions run at once
            else:
                exposed += seconds
    exposed += sum(max(0.0, seconds - computing.get(phase, 0.0)) for (phase, _), seconds in beside.items())
    return total, exposed

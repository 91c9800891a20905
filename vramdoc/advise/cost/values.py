"""What the time model answers with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with the range in which four of five calibrated cases lie."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeEstimate:
    """The modelled time of one step, in seconds."""

    seconds: float
    low: float
    high: float
    parts: dict[str, float]  # adds up to ``seconds``: "matmul bf16", "elementwise fp32", ..., "host", "communication"
    gpu_seconds: float  # that the GPU computes, were it never kept waiting
    host_seconds: float  # that the host needs to issue the step
    communication_seconds: float  # of all collectives
    exposed_communication_seconds: float  # of these, what no computation hides
    transfer_seconds: float  # between host and GPU
    launches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """How fast the host issues work."""

    seconds_per_operation: float  # one eager PyTorch operation, its Python included
    seconds_per_view: float  # one that launches nothing
    seconds_per_launch: float  # one kernel, without an operator around it

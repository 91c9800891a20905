"""Commands that follow from a report: all of them exist, and each says why it is worth running."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from vramdoc.analysis.verdict import Verdict, judge
from vramdoc.errors import UnknownGpuError
from vramdoc.hardware import Gpu, all_gpus, find
from vramdoc.report import Report

_OLDEST_SUGGESTED = (8, 0)  # bf16, and kernels in every current torch build
_MARGIN = 1.02  # of the need: workspaces and contexts differ a little between GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    command: str
    reason: str


def next_steps(report: Report) -> tuple[NextStep, ...]:
    """At most three: another batch size, another GPU, and the report to look at or to pass on."""
    verdict = judge(report)
    base = f"vramdoc profile {shlex.quote(report.target)}"
    steps = [_other_batch(report, verdict, base), _other_gpu(report, verdict, base)]
    steps.append(NextStep(command=f"{base}{_gpu_flag(report)} -o report.html", reason="the whole report as a page"))
    return tuple(step for step in steps if step is not None)


def smallest_gpu(need_bytes: int, capability: tuple[int, int]) -> Gpu | None:
    """The GPU with the least memory that has room for ``need_bytes``, none much older than ``capability``."""
    oldest = min(capability, _OLDEST_SUGGESTED)
    able = [
        gpu
        for gpu in all_gpus()
        if gpu.compute_capability >= oldest and gpu.total_bytes >= need_bytes * _MARGIN + (gpu.context_bytes or 0)
    ]
    return min(able, key=lambda gpu: (gpu.total_bytes, gpu.short_name), default=None)


def _other_batch(report: Report, verdict: Verdict, base: str) -> NextStep | None:
    if verdict.outcome in ("fits", "grows"):
        size, reason = 2 * report.batch_size, "does twice the batch fit?"
    elif report.batch_size > 1:
        size, reason = report.batch_size // 2, "does half the batch fit?"
    else:
        return None
    return NextStep(command=f"{base}{_gpu_flag(report)} --batch-size {size}", reason=reason)


def _other_gpu(report: Report, verdict: Verdict, base: str) -> NextStep | None:
    major, _, minor = report.device.compute_capability.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        return None
    gpu = smallest_gpu(report.peak.reserved_bytes, (int(major), int(minor)))
    if gpu is None or gpu.name == report.device.name:
        return None
    if verdict.outcome in ("fits", "grows") and gpu.total_bytes >= report.device.total_bytes:
        return None
    batch = f" --batch-size {report.batch_size}"
    return NextStep(command=f"{base} --gpu {gpu.short_name}{batch}", reason=f"the smallest GPU with room: {gpu.name}")


def _gpu_flag(report: Report) -> str:
    if report.device.kind == "real":
        return ""
    try:
        name = find(report.device.name).short_name
    except UnknownGpuError:
        name = shlex.quote(report.device.name)
    return f" --gpu {name}"

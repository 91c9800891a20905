"""From the measurements of one target to its report: pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from vramdoc import __version__
from vramdoc.report import Attribution, Limited, Peak, Report, Values
from vramdoc.report.measurement import Attributed, Measurement
from vramdoc.units import format_bytes

AGREEMENT = 0.001
"""How far the attributed pass's peak may lie from the plain one's before the report says that it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The measurements that one report is made of."""

    plain: Measurement  # the figures
    attributed: Measurement  # what they are made of
    limited: Measurement | None = None  # the same under the GPU's limit, where the plain run is over it
    alternatives: tuple[Measurement, ...] = ()  # the same under other rules for unknown values


def assemble(
    target: str, runs: Runs, *, context_bytes: int | None, context_estimated: bool = False, notes: list[str]
) -> Report:
    """The report of ``target``, which is named as the user gave it."""
    plain, attributed = runs.plain, runs.attributed.attributed
    assert attributed is not None
    peaks = [plain.peak_allocated_bytes, *(run.peak_allocated_bytes for run in runs.alternatives)]
    ranged = len(set(peaks)) > 1
    agreement = abs(runs.attributed.peak_allocated_bytes - plain.peak_allocated_bytes)
    limited = _limited(runs.limited)
    ran_out = plain.out_of_memory is not None
    return Report(
        vramdoc_version=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        target=target,
        device=plain.device,
        versions=plain.versions,
        batch_size=plain.batch_size,
        steps=plain.steps,
        peak=Peak(
            allocated_bytes=plain.peak_allocated_bytes,
            reserved_bytes=plain.peak_reserved_bytes,
            context_bytes=context_bytes,
            context_estimated=context_estimated,
            phase=plain.peak_phase,
            step=plain.peak_step,
        ),
        categories=_categories(attributed, plain.peak_allocated_bytes),
        phases=plain.phases,
        growth_bytes_per_step=plain.growth_bytes_per_step,
        modules=attributed.modules,
        lines=attributed.lines,
        largest=attributed.largest,
        timeline=attributed.timeline,
        attribution=Attribution(
            allocated_bytes=runs.attributed.peak_allocated_bytes,
            agrees=agreement <= AGREEMENT * plain.peak_allocated_bytes,
        ),
        values=Values(
            exact=not plain.assumptions,
            shadowed=bool(plain.unknown_reads),
            assumptions=plain.assumptions,
            low_bytes=min(peaks) if ranged else None,
            high_bytes=max(peaks) if ranged else None,
        ),
        fits=limited.completed if limited else not ran_out,
        alloc_retries=limited.alloc_retries if limited else plain.alloc_retries,
        limited=limited,
        warnings=(*notes, *plain.warnings, *_warnings(runs, agreement)),
        step_seconds=plain.step_seconds,
    )


def _categories(attributed: Attributed, peak: int) -> dict[str, int]:
    """Requested bytes by category; what the plain peak has beyond them is the allocator's rounding."""
    categories = dict(attributed.categories)
    categories["rounding"] += peak - sum(categories.values())
    return categories


def _limited(run: Measurement | None) -> Limited | None:
    if run is None:
        return None
    return Limited(
        completed=run.out_of_memory is None,
        alloc_retries=run.alloc_retries,
        reserved_bytes=run.peak_reserved_bytes,
        out_of_memory=run.out_of_memory.message if run.out_of_memory else "",
        phase=run.out_of_memory.phase if run.out_of_memory else "",
    )


def _warnings(runs: Runs, agreement: int) -> list[str]:
    plain = runs.plain
    warnings = []
    if agreement > AGREEMENT * plain.peak_allocated_bytes:
        warnings.append(
            f"the attributed pass peaked {format_bytes(agreement)} apart from the plain one: "
            "the breakdown is of another moment than the figure"
        )
    if plain.growth_bytes_per_step > 0:
        warnings.append(
            f"memory grows by {format_bytes(plain.growth_bytes_per_step)} a step: something keeps tensors alive"
        )
    elif not plain.settled and plain.steps > 1 and plain.out_of_memory is None:
        warnings.append(f"the peak had not repeated after {plain.steps} steps: run more with --steps")
    if plain.out_of_memory:
        warnings.append(f"the GPU ran out of memory in {plain.out_of_memory.phase}: the figures end there")
    return warnings

"""From measurements to a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vramdoc.report import CATEGORIES, Assumption, Device, Report, decode, encode
from vramdoc.report.measurement import Attributed, Measurement, OutOfMemory
from vramdoc.runner.assemble import Runs, assemble

ATTRIBUTED = Attributed(
    categories=dict.fromkeys(CATEGORIES, 0) | {"parameters": 600, "activations": 300},
    modules=(),
    lines=(),
    largest=(),
    timeline=(),
)
PLAIN = Measurement(
    device=Device(name="NVIDIA A100-SXM4-40GB", kind="null", total_bytes=10_000, compute_capability="8.0"),
    versions={"torch": "2.14.1"},
    batch_size=4,
    steps=3,
    settled=True,
    peak_allocated_bytes=1000,
    peak_reserved_bytes=2000,
    peak_phase="backward",
    peak_step=1,
    phases=(),
    growth_bytes_per_step=0,
    alloc_retries=0,
    context_bytes=None,
)


def report(plain: Measurement = PLAIN, attributed_peak: int = 1000, **runs: Any) -> Report:
    attributed = replace(plain, attributed=ATTRIBUTED, peak_allocated_bytes=attributed_peak)
    return assemble("model.py", Runs(plain=plain, attributed=attributed, **runs), context_bytes=500, notes=[])


def test_categories_sum_to_the_peak() -> None:
    """What the blocks do not explain is the allocator's rounding, to the byte."""
    found = report()
    assert found.categories["rounding"] == 100
    assert sum(found.categories.values()) == found.peak.allocated_bytes


def test_disagreement_is_said() -> None:
    """An attributed pass over 0.1 % off the plain one is reported; at 0.1 % it is not."""
    assert report(attributed_peak=1001).attribution.agrees
    off = report(attributed_peak=1002)
    assert not off.attribution.agrees
    assert any("2 B apart" in warning for warning in off.warnings)


def test_limited_run_decides_whether_it_fits() -> None:
    """Over the limit, the run with the limit says whether the allocator can squeeze it in."""
    squeezed = report(limited=replace(PLAIN, alloc_retries=3))
    assert (squeezed.fits, squeezed.alloc_retries) == (True, 3)
    out = replace(PLAIN, out_of_memory=OutOfMemory(message="CUDA out of memory.", phase="loss", step=0))
    refused = report(limited=out)
    assert not refused.fits
    assert refused.limited is not None
    assert (refused.limited.out_of_memory, refused.limited.phase) == ("CUDA out of memory.", "loss")


def test_range_over_the_rules() -> None:
    """Assumed values make the report inexact, and other rules give its range."""
    assumption = Assumption(op="aten.nonzero", file="m.py", line=1, rule="index", reads=2)
    plain = replace(PLAIN, assumptions=(assumption,), unknown_reads=2)
    low, high = replace(plain, peak_allocated_bytes=900), replace(plain, peak_allocated_bytes=1500)
    values = report(plain, alternatives=(low, high)).values
    assert (values.exact, values.shadowed, values.low_bytes, values.high_bytes) == (False, True, 900, 1500)
    same = report(plain, alternatives=(plain, plain)).values
    assert (same.low_bytes, same.high_bytes) == (None, None)


def test_growth_and_unsettled_peaks_are_warned_of() -> None:
    """A leak names its size a step; a peak that has not repeated asks for more steps."""
    assert any("grows by 64 B a step" in w for w in report(replace(PLAIN, growth_bytes_per_step=64)).warnings)
    assert any("--steps" in w for w in report(replace(PLAIN, settled=False)).warnings)
    assert report().warnings == ()


def test_round_trip() -> None:
    """An assembled report survives its JSON."""
    found = report()
    assert decode(encode(found)) == found

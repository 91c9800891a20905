"""Does it fit, and at what price."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.samples import GIB, every, gpt2, leaky, squeezed, too_big
from vramdoc.analysis.verdict import judge, steps_until_full


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("gpt2", "fits"), ("too_big", "too_big"), ("squeezed", "squeezes"), ("leaky", "grows"), ("assumed", "fits")],
)
def test_outcome(name: str, outcome: str) -> None:
    """The four answers to the first question."""
    assert judge(every()[name]).outcome == outcome


def test_parts_add_up_to_the_gpu() -> None:
    """Allocated, cached, context and free are the whole GPU, or the need is total plus what is short."""
    fits, short = judge(gpt2()), judge(too_big())
    assert fits.need_bytes + fits.free_bytes == gpt2().device.total_bytes
    assert fits.short_bytes == 0
    assert short.need_bytes - short.short_bytes == too_big().device.total_bytes
    assert short.free_bytes == 0


def test_retries_on_a_real_gpu_are_a_squeeze() -> None:
    """A real GPU has no second, limited run: its own retries tell."""
    assert judge(replace(gpt2(), alloc_retries=3)).outcome == "squeezes"
    assert judge(squeezed()).retries == 2


def test_steps_until_full() -> None:
    """26.0 GiB to spare at 1.5 GiB a step last 17 whole steps; a steady run lasts for ever."""
    assert steps_until_full(leaky()) == 17
    assert steps_until_full(gpt2()) is None
    assert steps_until_full(replace(gpt2(), growth_bytes_per_step=-GIB)) is None


def test_growth_too_slow_to_matter_is_no_verdict() -> None:
    """A counter of 512 bytes a step fills no GPU in any run; the growth line still tells it."""
    assert judge(replace(gpt2(), growth_bytes_per_step=512)).outcome == "fits"

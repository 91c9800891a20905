"""Commands to run next."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from tests.report.samples import GIB, every, gpt2, hostile, leaky, too_big
from vramdoc.analysis.next_steps import next_steps, smallest_gpu
from vramdoc.hardware import find
from vramdoc.report import Report


def commands(report: Report) -> list[str]:
    """The commands alone."""
    return [step.command for step in next_steps(report)]


def test_a_fitting_step_is_asked_for_more() -> None:
    """Twice the batch, and the smallest GPU that would do."""
    larger, smaller, page = commands(gpt2())
    assert larger == "vramdoc profile sample_models/gpt2.py --gpu a100-40 --batch-size 16"
    assert page == "vramdoc profile sample_models/gpt2.py --gpu a100-40 -o report.html"
    name = shlex.split(smaller)[shlex.split(smaller).index("--gpu") + 1]
    assert find(name).total_bytes < gpt2().device.total_bytes
    assert find(name).total_bytes > gpt2().peak.reserved_bytes


def test_a_step_that_does_not_fit_is_halved_or_moved() -> None:
    """Half the batch, or a GPU that has the room."""
    halved, moved, _ = commands(too_big())
    assert halved == "vramdoc profile sample_models/too_big.py --gpu 4090 --batch-size 16"
    name = shlex.split(moved)[shlex.split(moved).index("--gpu") + 1]
    assert find(name).total_bytes > too_big().peak.reserved_bytes


def test_a_batch_of_one_cannot_be_halved() -> None:
    """No command that could only fail."""
    assert not any("--batch-size 0" in command for command in commands(replace(too_big(), batch_size=1)))


def test_a_real_gpu_is_measured_again() -> None:
    """What was measured here stays here: no --gpu, which would predict instead."""
    assert commands(leaky())[0] == "vramdoc profile sample_models/leaky.py --batch-size 16"


def test_every_command_is_one_command() -> None:
    """File and GPU names are quoted: a copied command does what it says, whatever they hold."""
    for command in commands(hostile()):
        words = shlex.split(command)
        assert words[:3] == ["vramdoc", "profile", hostile().target]
        assert len(words) <= 7


@pytest.mark.parametrize("report", every().values(), ids=every().keys())
def test_only_flags_that_exist(report: Report) -> None:
    """A suggestion that the command line refuses is worse than none."""
    for command in commands(report):
        flags = {word for word in shlex.split(command)[3:] if word.startswith("-")}
        assert flags <= {"--gpu", "--batch-size", "-o"}


def test_smallest_gpu() -> None:
    """Room is what the total leaves beside the context; beyond the largest there is none."""
    assert smallest_gpu(10**15, (8, 0)) is None
    gpu = smallest_gpu(60 * GIB, (8, 0))
    assert gpu is not None
    assert 60 * GIB < gpu.total_bytes < 81 * GIB

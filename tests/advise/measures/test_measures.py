"""The measures as data, and that the worker can apply each of them."""

from __future__ import annotations

import inspect

import pytest

from vramdoc.advise.measures import ALL, Measure, by_name
from vramdoc.errors import UsageError
from vramdoc.worker.measures.registry import _MEASURES

NAMES = [measure.name for measure in ALL]


def test_names_are_the_workers() -> None:
    """Data and code know the same measures, each once."""
    assert len(set(NAMES)) == len(NAMES)
    assert set(NAMES) == set(_MEASURES)


@pytest.mark.parametrize("measure", ALL, ids=NAMES)
def test_options_are_the_functions(measure: Measure) -> None:
    """Every option of the data is an argument of the function, with the same default, and none is missing."""
    parameters = list(inspect.signature(_MEASURES[measure.name]).parameters.values())[1:]
    assert {option.name: option.default for option in measure.options} == {
        parameter.name: parameter.default for parameter in parameters
    }


@pytest.mark.parametrize("measure", ALL, ids=NAMES)
def test_words(measure: Measure) -> None:
    """A person is told what it touches, costs and risks; what it excludes exists."""
    assert measure.title
    assert measure.touches
    assert measure.applies
    assert measure.change
    assert measure.cost
    assert measure.excludes <= set(NAMES)


def test_every_measure_is_there() -> None:
    """The list that advice promises."""
    assert set(NAMES) >= {
        "fused_optimizer", "no_foreach", "zero_grad_to_none", "sdpa", "chunked_cross_entropy", "ddp_bucket_view",
        "expandable_segments", "channels_last", "checkpoint", "selective_checkpoint", "offload_activations",
        "micro_batch", "optimizer_in_backward", "offload_parameters", "bf16_autocast", "fp16_autocast",
        "bf16_parameters", "adam_8bit", "adafactor", "sgd_momentum", "lora", "freeze", "smaller_batch",
        "shorter_sequence",
    }  # fmt: skip


def test_order() -> None:
    """What changes the modules comes before what wraps them, and that before the optimizer."""
    assert [measure.stage for measure in ALL] == sorted(measure.stage for measure in ALL)
    order = ("lora", "checkpoint", "bf16_autocast", "sgd_momentum", "fused_optimizer", "optimizer_in_backward")
    assert sorted(order, key=NAMES.index) == list(order)


def test_unknown_name() -> None:
    """A wrong name gets the right ones."""
    assert by_name("checkpoint").tier == "speed"
    with pytest.raises(UsageError, match="no measure is called 'chekpoint'") as caught:
        by_name("chekpoint")
    assert "checkpoint" in caught.value.hint

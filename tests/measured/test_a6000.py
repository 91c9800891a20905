"""The null GPU against ten published runs on a real RTX A6000: every figure, to the byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
PUBLISHED = json.loads((HERE.parent / "data" / "a6000_llm.json").read_text())
FIGURES = ("weights", "states", "peak", "total")


@pytest.mark.parametrize("run", PUBLISHED["runs"], ids=lambda run: run["id"])
def test_a_published_run_comes_out_to_the_byte(run: dict[str, Any], on_null_gpu: Callable[..., Any]) -> None:
    """Real measurements of others are the proof that the prediction is right; a byte off is a wrong model."""
    config = PUBLISHED["configs"][run["model"]]
    source = f"from tests.measured.a6000_steps import measure\nemit(measure({config!r}, {run!r}))\n"
    predicted = on_null_gpu(source, "rtx a6000")
    assert predicted == {figure: run["measured"][figure] for figure in FIGURES}


def test_the_figures_are_all_there() -> None:
    """A run lost from the data file would be a check lost in silence."""
    assert len(PUBLISHED["runs"]) == 10
    for run in PUBLISHED["runs"]:
        measured = run["measured"]
        assert measured["total"] == measured["weights"] + measured["states"] + measured["peak"]

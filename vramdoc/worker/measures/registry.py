"""The table of measures that the worker can apply, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vramdoc.report.measurement import Choice
from vramdoc.worker.training import Training

Apply = Callable[..., None]  # (training, **options)

_MEASURES: dict[str, Apply] = {}


def measure(name: str) -> Callable[[Apply], Apply]:
    """Decorator: the function applies the measure ``name`` to a training loop, before anything is built."""

    def register(function: Apply) -> Apply:
        assert name not in _MEASURES, f"two measures are called {name}"
        _MEASURES[name] = function
        return function

    return register


def apply(training: Training, choices: Iterable[Choice]) -> None:
    """Changes ``training`` by every choice, in order. A measure that does not apply to
    the target raises :class:`vramdoc.errors.MeasureError` with the reason."""
    for choice in choices:
        training.applied[choice.name] = ""  # its place in the order: the code may come when there is a model
        _MEASURES[choice.name](training, **choice.options)

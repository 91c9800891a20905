"""The measures as data, in the order in which they are applied."""

from vramdoc.advise.measures.free import FREE
from vramdoc.advise.measures.model import Axis, Measure, Option, Tier
from vramdoc.advise.measures.numerics import NUMERICS
from vramdoc.advise.measures.sharding import SHARDING
from vramdoc.advise.measures.speed import SPEED
from vramdoc.advise.measures.training import TRAINING
from vramdoc.errors import UsageError

ALL: tuple[Measure, ...] = tuple(
    sorted((*FREE, *SPEED, *NUMERICS, *TRAINING, *SHARDING), key=lambda measure: measure.stage)
)

_BY_NAME = {measure.name: measure for measure in ALL}


def by_name(name: str) -> Measure:
    """The measure called ``name``; raises :class:`UsageError` with the names there are."""
    if name not in _BY_NAME:
        raise UsageError(f"no measure is called {name!r}", hint=f"one of: {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]


__all__ = ["ALL", "Axis", "Measure", "Option", "Tier", "by_name"]

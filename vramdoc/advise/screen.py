"""Tries every measure alone. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from vramdoc.advise import measures
from vramdoc.advise.candidate import Candidate, Ledger, Result
from vramdoc.advise.measures import Measure
from vramdoc.advise.options import alone, choices, is_allowed
from vramdoc.report.measurement import Choice


def screen(ledger: Ledger, *, block: str | None) -> list[tuple[Measure, Choice, Result]]:
    """Every measure for one GPU with what it gave by itself, in the order of the measures."""
    tried = [
        (measure, alone(measure, block=block))
        for measure in measures.ALL
        if measure.tier != "sharding" and not measure.needs
    ]
    results = ledger.measure([Candidate(choices=(choice,)) for _, choice in tried])
    return [(measure, choice, result) for (measure, choice), result in zip(tried, results, strict=True)]


def choices_by_axis(
    screened: Sequence[tuple[Measure, Choice, Result]],
    *,
    allow: Sequence[str],
    block: str | None,
    blocks: int,
    batch: int,
    gpus: int,
) -> Mapping[str, list[Choice]]:
    """What the search may choose from: measures that apply and that the user allows, at every setting worth a try.

    Measures that go with a strategy for several GPUs could not be tried alone; there the search finds out.
    """
    applying = [measure for measure, _, result in screened if result.ok]
    together = [measure for measure in measures.ALL if measure.needs] if gpus > 1 else []
    found: dict[str, list[Choice]] = defaultdict(list)
    for measure in (*applying, *together):
        if is_allowed(measure, allow):
            found[measure.axis] += choices(measure, block=block, blocks=blocks, batch=batch)
    return dict(found)

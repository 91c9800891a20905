"""The words of a comparison, the same in every format. Plain text: each renderer escapes it for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vramdoc.analysis.difference import Change, Difference
from vramdoc.analysis.footprint import Footprint
from vramdoc.render.style import label
from vramdoc.units import format_bytes

NO_CHANGE = "No figure changed."
_TOTALS = {"growth": "growth per step"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table: a figure and what became of it."""

    name: str
    before: int
    after: int
    detail: str = ""  # the code of a source line

    @property
    def grown(self) -> int:
        """Negative where it shrank."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    title: str
    rows: tuple[Row, ...]
    is_code: bool = False  # whether the names are names in code


def headline(found: Difference) -> str:
    """What became of the reserved peak."""
    change = next(change for change in found.totals if change.name == "reserved")
    if found.is_empty:
        return NO_CHANGE
    if not change.grown:
        return f"As much as before: {format_bytes(change.after)} reserved"
    verb = "Grew" if change.grown > 0 else "Shrank"
    size, before, after = (format_bytes(abs(size)) for size in (change.grown, change.before, change.after))
    return f"{verb} by {size}: from {before} to {after} reserved"


def subject(found: Difference) -> tuple[str, ...]:
    """What was compared, in one line where both runs were made alike."""
    before, after = (_run(run) for run in (found.before, found.after))
    return (after,) if before == after else (f"before: {before}", f"after: {after}")


def sections(found: Difference) -> tuple[Section, ...]:
    """The tables, those that have nothing to say left out."""
    lines = tuple(
        Row(name=change.function, before=change.before, after=change.after, detail=change.code)
        for change in found.lines
    )
    totals = tuple(
        Row(name=_TOTALS.get(change.name, change.name), before=change.before, after=change.after)
        for change in found.totals
    )
    every = (
        Section(title="Peak", rows=totals),
        Section(title="By category", rows=_labelled(found.categories)),
        Section(title="By phase", rows=_labelled(found.phases)),
        Section(title="By module, without its children", rows=_named(found.modules), is_code=True),
        Section(title="By line", rows=lines, is_code=True),
    )
    return tuple(section for section in every if section.rows)


def accepted(name: str, before: Footprint | None, after: Footprint) -> str:
    """What ``vramdoc baseline update`` says of one entry."""
    now = format_bytes(after.totals["reserved"])
    if before is None:
        return f"{name}: {now} reserved, new"
    grown = after.totals["reserved"] - before.totals.get("reserved", 0)
    if not grown:
        return f"{name}: {now} reserved, {'unchanged' if before == after else 'as before'}"
    return f"{name}: {now} reserved, {signed(grown)}"


def signed(size: int) -> str:
    """A difference with its sign."""
    return f"{'+' if size >= 0 else '-'}{format_bytes(abs(size))}"


def _run(run: Footprint) -> str:
    return f"{run.target}, batch {run.batch_size}, {run.device}, torch {run.torch or 'unknown'}"


def _labelled(changes: Sequence[Change]) -> tuple[Row, ...]:
    return tuple(Row(name=label(change.name), before=change.before, after=change.after) for change in changes)


def _named(changes: Sequence[Change]) -> tuple[Row, ...]:
    return tuple(
        Row(name=change.name or "the model itself", before=change.before, after=change.after) for change in changes
    )

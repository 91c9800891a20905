"""What grew between two runs, by total, category, phase, module and line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vramdoc.analysis.footprint import Footprint

_ALIKE = 0.6
"""How alike two lines of one function must be for one to count as the edited other (ratio of difflib)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One figure before and after. Sizes in bytes, 0 where it was not there."""

    name: str
    before: int
    after: int

    @property
    def grown(self) -> int:
        """Negative where it shrank."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """One source line before and after, also where it was edited. Sizes in bytes."""

    function: str  # "gpt2.py forward"
    code: str  # as it is now; as it was where it is gone
    before: int
    after: int

    @property
    def grown(self) -> int:
        """Negative where it shrank."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """All that changed, what grew most first; what is equal is left out, but for the totals."""

    before: Footprint
    after: Footprint
    totals: tuple[Change, ...]  # in the order of the footprint
    categories: tuple[Change, ...]
    phases: tuple[Change, ...]
    modules: tuple[Change, ...]  # each without what its children hold
    lines: tuple[LineChange, ...]

    @property
    def is_empty(self) -> bool:
        """Whether not one figure changed."""
        totals = any(change.grown for change in self.totals)
        return not (totals or self.categories or self.phases or self.modules or self.lines)


def difference(before: Footprint, after: Footprint) -> Difference:
    """What changed from ``before`` to ``after``."""
    return Difference(
        before=before,
        after=after,
        totals=tuple(
            Change(name=name, before=before.totals.get(name, 0), after=size) for name, size in after.totals.items()
        ),
        categories=changes(before.categories, after.categories),
        phases=changes(before.phases, after.phases),
        modules=changes(own_sizes(before.modules), own_sizes(after.modules)),
        lines=_line_changes(before.lines, after.lines),
    )


def changes(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[Change, ...]:
    """Every figure that differs, what grew most first."""
    found = [
        Change(name=name, before=before.get(name, 0), after=after.get(name, 0)) for name in before.keys() | after.keys()
    ]
    return tuple(sorted((change for change in found if change.grown), key=lambda change: (-change.grown, change.name)))


def own_sizes(modules: Mapping[str, int]) -> dict[str, int]:
    """What each module holds beyond its children, from sizes that include them."""
    own = dict(modules)
    for name, size in modules.items():
        parent = name
        while parent:
            parent = parent.rpartition(".")[0]
            if parent in modules:
                own[parent] -= size
                break
    return own


def _line_changes(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> tuple[LineChange, ...]:
    found = [
        change
        for function in before.keys() | after.keys()
        for change in _in_function(function, before.get(function, {}), after.get(function, {}))
        if change.grown
    ]
    return tuple(sorted(found, key=lambda change: (-change.grown, change.function, change.code)))


def _in_function(function: str, before: Mapping[str, int], after: Mapping[str, int]) -> Iterable[LineChange]:
    """The lines of one function: equal ones paired, then edited ones with what they most resemble, then the rest."""
    gone = {code: size for code, size in before.items() if code not in after}
    for code, size in sorted(after.items()):
        earlier = before.get(code)
        if earlier is None:
            match = difflib.get_close_matches(code, sorted(gone), n=1, cutoff=_ALIKE)
            earlier = gone.pop(match[0]) if match else 0
        yield LineChange(function=function, code=code, before=earlier, after=size)
    for code, size in gone.items():
        yield LineChange(function=function, code=code, before=size, after=0)

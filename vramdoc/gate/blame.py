"""Which module and which line a finding names, and where an annotation points."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path, PurePath

from vramdoc.analysis.difference import Difference, own_sizes
from vramdoc.analysis.footprint import Footprint, function_key
from vramdoc.report import LineRow, Report
from vramdoc.report.findings import LineBlame, ModuleBlame


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Who it was."""

    module: ModuleBlame | None
    line: LineBlame | None
    file: str  # of the user's own code
    file_line: int  # counted from 1


def blame(report: Report, now: Footprint, difference: Difference | None, *, within: str = "") -> Blame:
    """What grew most over the baseline, or without one what is largest; ``within`` keeps to one module and below."""
    lines = _lines(report, difference)
    own = next((line for line in lines if _is_own(line.file, report.target)), None)
    return Blame(
        module=_module(now, difference, within),
        line=lines[0] if lines else None,
        file=own.file if own is not None else from_here(report.target),
        file_line=own.line if own is not None else 1,
    )


def _is_own(file: str, target: str) -> bool:
    """Whether ``file`` is a part of the user's own code: below the target's or the current folder, and no package."""
    path = PurePath(file)
    below = not path.is_absolute() or path.is_relative_to(PurePath(from_here(target)).parent)
    return below and not {"site-packages", "dist-packages"} & set(path.parts)


def from_here(path: str) -> str:
    """``path`` as annotations want it: from the current folder where it lies below it, "/" between its parts."""
    file = PurePath(path)
    here = Path.cwd()
    return (file.relative_to(here) if file.is_relative_to(here) else file).as_posix()


def _module(now: Footprint, difference: Difference | None, within: str) -> ModuleBlame | None:
    """The module with most of its own. The model itself comes last: it also holds what the loss makes."""
    inside = [module for module in _modules(now, difference) if _is_within(module.name, within)]
    return next((module for module in inside if module.name), inside[0] if inside else None)


def _modules(now: Footprint, difference: Difference | None) -> list[ModuleBlame]:
    """Those that grew; where none did, or nothing is known of before, all of them."""
    grown = [change for change in difference.modules if change.grown > 0] if difference is not None else []
    if grown:
        return [ModuleBlame(name=change.name, bytes=change.after, grown_bytes=change.grown) for change in grown]
    ranked = sorted(own_sizes(now.modules).items(), key=lambda item: (-item[1], item[0]))
    return [ModuleBlame(name=name, bytes=size, grown_bytes=None) for name, size in ranked if size > 0]


def _is_within(name: str, module: str) -> bool:
    return not module or name == module or name.startswith(f"{module}.")


def _lines(report: Report, difference: Difference | None) -> list[LineBlame]:
    """Likewise for lines."""
    folder = posixpath.dirname(from_here(report.target))
    grown = [change for change in difference.lines if change.grown > 0] if difference is not None else []
    if not grown:
        return [_line(row, folder, row.bytes, None) for row in report.lines]
    rows: dict[tuple[str, str], LineRow] = {}
    for row in report.lines:  # largest first: of two equal lines in one function the larger is named
        rows.setdefault((function_key(row, report.target), row.code), row)
    return [_line(rows[change.function, change.code], folder, change.after, change.grown) for change in grown]


def _line(row: LineRow, folder: str, size: int, grown: int | None) -> LineBlame:
    return LineBlame(
        file=from_here(posixpath.normpath(posixpath.join(folder, PurePath(row.file).as_posix()))),
        line=max(row.line, 1),
        function=row.function,
        code=row.code,
        bytes=size,
        grown_bytes=grown,
    )

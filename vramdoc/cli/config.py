"""Where a setting comes from: flags win over the environment, that over pyproject.toml, that over defaults."""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from vramdoc import assumptions
from vramdoc.errors import UsageError
from vramdoc.hardware import find

T = TypeVar("T")

TIMEOUT = 600.0  # seconds for each run, where nobody says otherwise
_ENVIRONMENT = "VRAMDOC_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a profile is made with; None where nothing was said. Its fields are the keys of ``[tool.vramdoc]``."""

    target: str | None = None  # path of a Python file
    gpu: str | None = None  # name from the tables
    batch_size: int | None = None
    steps: int | None = None
    timeout: float | None = None  # seconds
    assume: dict[str, str] | None = None  # rule to choice

    def over(self, lower: Settings) -> Settings:
        """These settings, and those of ``lower`` where these say nothing; assumptions are joined rule by rule."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        merged = replace(lower, **{name: value for name, value in said.items() if value is not None})
        return replace(merged, assume={**(lower.assume or {}), **(self.assume or {})} or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The folder that settings and remembered reports belong to."""

    folder: Path
    settings: Settings
    budgets: tuple[Mapping[str, object], ...] = ()  # ``[[tool.vramdoc.budget]]``, as they are written


def resolve(flags: Settings, project: Project, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings that hold, checked. Raises :class:`UsageError`."""
    settings = flags.over(_from_environment(environment)).over(project.settings)
    for name, value in (("batch size", settings.batch_size), ("steps", settings.steps)):
        if value is not None and value < 1:
            raise UsageError(f"{name} must be at least 1, not {value}")
    if settings.timeout is not None and not 0 < settings.timeout < math.inf:
        raise UsageError(f"timeout must be a number of seconds above 0, not {settings.timeout:g}")
    if settings.gpu is not None:
        find(settings.gpu)
    assumptions.check(settings.assume or {})
    return settings


def find_project(start: Path) -> Project:
    """The project around ``start``: the nearest folder above with a pyproject.toml, else ``start`` itself."""
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return _from_pyproject(file)
    return Project(folder=start, settings=Settings())


def check_keys(table: Mapping[str, object], kind: type, where: str, *, tables: Sequence[str] = ()) -> None:
    """Raises :class:`UsageError` for a key of ``table`` that is no field of the dataclass ``kind``.

    ``tables`` are keys that were taken out of it, for the hint.
    """
    known = [field.name for field in fields(kind)] + list(tables)
    for key in table:
        if key not in known:
            nearest = difflib.get_close_matches(key.replace("-", "_"), known, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"the keys are {', '.join(known)}"
            raise UsageError(f"unknown key {key!r} in {where}", hint=hint)


def convert(values: Mapping[str, object], kind: type[T], where: str, *, strict: bool = True) -> T:
    """``values`` as the dataclass ``kind``. Raises :class:`UsageError` where one is of another type or missing."""
    try:
        return msgspec.convert(values, kind, strict=strict)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        key = place.rstrip("`")
        raise UsageError(f"{key or 'a value'} in {where}: {what}") from None


def _from_pyproject(file: Path) -> Project:
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from None
    table = tool.get("vramdoc", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"[tool.vramdoc] in {file} is not a table")
    where = f"[tool.vramdoc] in {file}"
    budgets = table.pop("budget", [])
    if not isinstance(budgets, list) or not all(isinstance(budget, dict) for budget in budgets):
        raise UsageError(f"budget in {where} is not a list of tables", hint="begin each with [[tool.vramdoc.budget]]")
    check_keys(table, Settings, where, tables=("budget",))
    settings = convert(table, Settings, where)
    if settings.target is not None:
        # As a path from where the user is: that is how the report will name it.
        settings = replace(settings, target=os.path.relpath(file.parent / settings.target))
    return Project(folder=file.parent, settings=settings, budgets=tuple(budgets))


def _from_environment(environment: Mapping[str, str]) -> Settings:
    said: dict[str, Any] = {}
    for field in fields(Settings):
        value = environment.get(_ENVIRONMENT + field.name.upper())
        if value:
            said[field.name] = value
    if "assume" in said:
        said["assume"] = assumptions.parse(said["assume"].split(","))
    return convert(said, Settings, f"the environment ({_ENVIRONMENT}...)", strict=False)

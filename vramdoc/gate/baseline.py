"""The baseline file: what each check measured when it was last accepted, made to be committed.

JSON, keys sorted, one figure a line, so that a diff of it reads as what changed. Names of lines are their code and
layers of a stack count together, so that it changes only where memory does.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import msgspec

from vramdoc.analysis.footprint import Footprint
from vramdoc.errors import ReportError, UsageError

SCHEMA_VERSION = 1
_RENEW = "write it anew: vramdoc baseline update"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Footprints by the name of their check."""

    schema_version: int = SCHEMA_VERSION
    entries: dict[str, Footprint] = field(default_factory=dict)

    def entry(self, name: str) -> Footprint:
        """The footprint called ``name``. Raises :class:`UsageError` where there is none."""
        found = self.entries.get(name)
        if found is None:
            close = difflib.get_close_matches(name, sorted(self.entries), n=1)
            meant = f"did you mean {close[0]}? " if close else ""
            raise UsageError(f"the baseline has no entry {name!r}", hint=f"{meant}vramdoc baseline update adds it")
        return found

    def updated(self, entries: Mapping[str, Footprint]) -> Baseline:
        """This baseline with ``entries`` added or replaced."""
        return replace(self, entries={**self.entries, **entries})


def encode_baseline(baseline: Baseline) -> str:
    """``baseline`` as the text of its file."""
    return msgspec.json.format(msgspec.json.encode(baseline, order="sorted"), indent=1).decode() + "\n"


def read_baseline(path: Path) -> Baseline:
    """The baseline at ``path``. Raises :class:`ReportError`."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise ReportError(
            f"there is no baseline {path}", hint=f"vramdoc baseline update --baseline {path} writes it"
        ) from None
    except OSError as error:
        raise ReportError(f"cannot read baseline {path}: {error.strerror or error}") from None
    return decode_baseline(text, source=str(path))


def decode_baseline(text: str | bytes, *, source: str = "baseline") -> Baseline:
    """The baseline in ``text``; ``source`` names it in errors. Raises :class:`ReportError`."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "it holds the marks of a merge: resolve it" if "<<<<<<<" in _shown(text) else _RENEW
        raise ReportError(f"{source} is not JSON: {error}", hint=hint) from None
    version = data.get("schema_version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise ReportError(f"{source} is not a vramdoc baseline: it has no schema_version", hint=_RENEW)
    if version != SCHEMA_VERSION:
        raise ReportError(
            f"{source} has schema version {version}; this vramdoc reads version {SCHEMA_VERSION}",
            hint=_RENEW if version < SCHEMA_VERSION else "upgrade vramdoc",
        )
    _check_keys(data, Baseline, source)
    try:
        baseline = msgspec.convert(data, Baseline)
    except msgspec.ValidationError as error:
        raise ReportError(f"{source} is not a valid baseline: {error}", hint=_RENEW) from None
    for name, entry in data["entries"].items() if baseline.entries else ():
        _check_keys(entry, Footprint, f"entry {name!r} of {source}")
    return baseline


def _check_keys(table: Mapping[str, object], kind: type[Baseline | Footprint], where: str) -> None:
    known = [each.name for each in fields(kind)]
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(known)}"
            raise ReportError(f"unknown key {key!r} in {where}", hint=hint)


def _shown(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "replace")

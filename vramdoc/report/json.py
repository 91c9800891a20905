"""Reports as JSON. A file from outside is data: it is checked against the types, and nothing in it is run."""

from __future__ import annotations

import msgspec

from vramdoc.errors import ReportError
from vramdoc.report.model import CATEGORIES, SCHEMA_VERSION, Report


def encode(report: Report) -> str:
    """``report`` as indented JSON, one trailing newline; keys in the order of the dataclass."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n"


def decode(text: str | bytes, *, source: str = "report") -> Report:
    """The report in ``text``; ``source`` names it in errors. Raises :class:`ReportError`."""
    try:
        header = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReportError(f"{source} is not JSON: {error}") from None
    version = header.get("schema_version") if isinstance(header, dict) else None
    if not isinstance(version, int):
        raise ReportError(f"{source} is not a vramdoc report: it has no schema_version")
    if version != SCHEMA_VERSION:
        raise ReportError(
            f"{source} has schema version {version}; this vramdoc reads version {SCHEMA_VERSION}",
            hint="profile the target again" if version < SCHEMA_VERSION else "upgrade vramdoc",
        )
    try:
        report = msgspec.convert(header, Report)
    except msgspec.ValidationError as error:
        raise ReportError(f"{source} is not a valid report: {error}") from None
    if set(report.categories) != set(CATEGORIES):
        raise ReportError(f"{source} is not a valid report: its categories are not those of schema {version}")
    return report

"""A comparison as JSON, for programs: sizes are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from vramdoc.analysis.difference import Change, Difference, LineChange

SCHEMA_VERSION = 1


def render(found: Difference) -> str:
    """The document, one trailing newline."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "before": found.before,
        "after": found.after,
        "totals": _rows(found.totals),
        "categories": _rows(found.categories),
        "phases": _rows(found.phases),
        "modules": _rows(found.modules),
        "lines": _rows(found.lines),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _rows(changes: Sequence[Change | LineChange]) -> list[dict[str, Any]]:
    return [{**asdict(change), "grown": change.grown} for change in changes]

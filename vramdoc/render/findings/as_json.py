"""Checks as JSON, for programs: sizes are bytes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from vramdoc.report.findings import Checked, CheckResult

SCHEMA_VERSION = 1


def render(result: CheckResult) -> str:
    """The document, one trailing newline."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "passed": result.passed,
        "exit_code": result.exit_code,
        "checks": [_encodable(_check(check)) for check in result.checks],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _check(check: Checked) -> dict[str, Any]:
    fields = asdict(check)
    for finding, shown in zip(check.findings, fields["findings"], strict=True):
        shown["over_bytes"] = finding.over_bytes
    return {"passed": check.passed, **fields}


def _encodable(value: Any) -> Any:
    """``value`` with the halves of characters that UTF-8 cannot hold, as file names may have them, as escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list | tuple) else value

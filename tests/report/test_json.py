"""Reports as files: what is written is what is read, and a file is data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.report.samples import every, gpt2
from vramdoc.errors import ReportError
from vramdoc.report import SCHEMA_VERSION, Report, decode, encode


@pytest.mark.parametrize("report", every().values(), ids=every().keys())
def test_round_trip(report: Report) -> None:
    """Nothing is lost or changed on the way through a file, hostile text included."""
    assert decode(encode(report)) == report


def test_keys_that_others_build_on() -> None:
    """CI scripts read these by name: they may not move."""
    written = json.loads(encode(gpt2()))
    assert written["schema_version"] == SCHEMA_VERSION
    assert set(written["device"]) == {"name", "kind", "total_bytes", "compute_capability", "count"}
    assert set(written["peak"]) >= {"allocated_bytes", "reserved_bytes", "context_bytes", "phase", "step"}
    assert sum(written["categories"].values()) == written["peak"]["allocated_bytes"]
    assert set(written) >= {
        *("versions", "target", "batch_size", "categories", "phases", "growth_bytes_per_step", "modules"),
        *("lines", "largest", "fits", "alloc_retries", "warnings", "step_seconds"),
    }


@pytest.mark.parametrize(
    ("version", "hint"), [(SCHEMA_VERSION - 1, "profile the target again"), (SCHEMA_VERSION + 1, "upgrade")]
)
def test_other_versions_are_refused(version: int, hint: str) -> None:
    """Guessing at another schema would give wrong figures; the hint says what to do instead."""
    text = _changed(schema_version=version)
    with pytest.raises(ReportError, match=f"old.json has schema version {version}") as caught:
        decode(text, source="old.json")
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        b"\xff\xfe",
        b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",  # a pickle
    ],
)
def test_what_is_no_report_is_refused(text: str | bytes) -> None:
    """Any file may be handed over: the answer is one error that names it."""
    with pytest.raises(ReportError, match="given"):
        decode(text, source="given")


@pytest.mark.parametrize(
    "change",
    [
        {"batch_size": "8"},
        {"batch_size": 1.5},
        {"fits": "yes"},
        {"device": None},
        {"device": {"name": "x", "kind": "imagined", "total_bytes": 1, "compute_capability": "9.0"}},
        {"phases": {"name": "load"}},
        {"categories": {"parameters": 1}},
        {"warnings": [1]},
        {"schema_version": True},
    ],
)
def test_wrong_types_are_refused(change: dict[str, Any]) -> None:
    """A field of another type would fail far from here, or worse, be shown."""
    with pytest.raises(ReportError):
        decode(_changed(**change))


def test_missing_field_is_refused() -> None:
    """A report without its peak has nothing to say."""
    content = json.loads(encode(gpt2()))
    del content["peak"]
    with pytest.raises(ReportError, match="peak"):
        decode(json.dumps(content))


def _changed(**changes: Any) -> str:
    return json.dumps(json.loads(encode(gpt2())) | changes)

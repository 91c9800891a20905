"""The baseline file: how it reads, and what is wrong with one that cannot be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.samples import gpt2
from vramdoc.errors import ReportError, UsageError
from vramdoc.gate import Baseline, encode_baseline, footprint, read_baseline
from vramdoc.gate.baseline import decode_baseline


def baseline() -> Baseline:
    return Baseline(entries={"second": footprint(gpt2()), "first": footprint(gpt2())})


def test_round_trip() -> None:
    """What is written is what is read."""
    assert decode_baseline(encode_baseline(baseline())) == baseline()


def test_readable_diffs() -> None:
    """Keys are sorted and each figure has its line, so that a diff shows what changed and nothing else."""
    text = encode_baseline(baseline())
    assert list(json.loads(text)["entries"]) == ["first", "second"]
    changed = replace(baseline().entries["first"], categories={**baseline().entries["first"].categories, "inputs": 7})
    other = encode_baseline(baseline().updated({"first": changed}))
    different = [pair for pair in zip(text.splitlines(), other.splitlines(), strict=True) if pair[0] != pair[1]]
    assert [line.strip() for line in different[0]] == ['"inputs": 131072,', '"inputs": 7,']
    assert len(different) == 1


def test_small() -> None:
    """Twelve equal layers are one: the file of a model is a screen or two."""
    text = encode_baseline(Baseline(entries={"gpt2": footprint(gpt2())}))
    assert len(text.splitlines()) < 70
    assert '"transformer.h.*.attn"' in text
    assert '"transformer.h.3' not in text


def test_same_report_same_file() -> None:
    """The time of a profile and the numbers of its lines are not in it."""
    moved = replace(
        gpt2(), created="2031-01-01T00:00:00Z", lines=tuple(replace(r, line=r.line + 9) for r in gpt2().lines)
    )
    assert footprint(moved) == footprint(gpt2())


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "is not JSON", "write it anew"),
        ("{", "is not JSON", "write it anew"),
        ("<<<<<<< HEAD\n{}", "is not JSON", "it holds the marks of a merge"),
        ("\xff", "is not JSON", "write it anew"),
        ("[]", "has no schema_version", "write it anew"),
        ('{"entries": {}}', "has no schema_version", "write it anew"),
        ('{"schema_version": true}', "has no schema_version", "write it anew"),
        ('{"schema_version": 0}', "has schema version 0; this vramdoc reads version 1", "write it anew"),
        ('{"schema_version": 9}', "has schema version 9", "upgrade vramdoc"),
        ('{"schema_version": 1, "entrys": {}}', "unknown key 'entrys'", "did you mean entries?"),
        ('{"schema_version": 1, "entries": []}', "not a valid baseline", "write it anew"),
        ('{"schema_version": 1, "entries": {"a": {}}}', "not a valid baseline", "write it anew"),
    ],
)
def test_broken(tmp_path: Path, text: str, message: str, hint: str) -> None:
    """One line that names the file and says what to do."""
    file = tmp_path / "base.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(ReportError, match=message) as caught:
        read_baseline(file)
    assert str(file) in caught.value.message
    assert caught.value.hint.startswith(hint)


def test_unknown_key_of_an_entry() -> None:
    """A misspelt key by hand is not ignored."""
    data = json.loads(encode_baseline(baseline()))
    data["entries"]["first"]["categorys"] = {}
    with pytest.raises(ReportError, match="unknown key 'categorys' in entry 'first'") as caught:
        decode_baseline(json.dumps(data))
    assert caught.value.hint == "did you mean categories?"


def test_missing(tmp_path: Path) -> None:
    """No file, a folder, no entry: each says what to do."""
    with pytest.raises(ReportError, match="there is no baseline") as caught:
        read_baseline(tmp_path / "none.json")
    assert "vramdoc baseline update" in caught.value.hint
    with pytest.raises(ReportError, match="cannot read baseline"):
        read_baseline(tmp_path)
    with pytest.raises(UsageError, match="no entry 'frist'") as missing:
        baseline().entry("frist")
    assert missing.value.hint.startswith("did you mean first?")

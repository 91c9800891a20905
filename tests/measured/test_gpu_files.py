"""The null GPU, held to what ``pytest tests/gpu`` measured on real GPUs and was committed under tests/data/gpu."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu.cases import BY_NAME, CASES, Case
from tests.gpu.compare import (
    DATA,
    differences,
    disagreements,
    held_cases,
    null_environment,
    run_case,
    write_comparison,
)

HELD = [(path, case) for path in sorted(DATA.glob("*.json")) for case in held_cases(path)]


@pytest.mark.parametrize(("path", "case"), HELD, ids=lambda value: getattr(value, "stem", getattr(value, "name", "")))
def test_a_measured_case_is_predicted(path: Path, case: Case) -> None:
    """A prediction that was right once must stay right: real measurements are the reference."""
    assert disagreements(path, case) == []


def test_a_written_file_holds_the_null_gpu(tmp_path: Path) -> None:
    """With no file committed, the holder would hold nothing unseen: it must pass the truth and refuse a lie."""
    name, other = "leaky", "lstm-fp32"  # one exact, one with workspaces
    environment = null_environment("h200")
    results = {case: run_case(BY_NAME[case], environment) for case in (name, other)}
    path = tmp_path / "measured.json"
    write_comparison(path, results, results)
    assert held_cases(path) == [BY_NAME[name], BY_NAME[other]]
    assert disagreements(path, BY_NAME[name]) == []
    assert differences(BY_NAME[other], results[other], results[other]) == []
    document = json.loads(path.read_text())
    assert document["gpu"]["name"] == "NVIDIA H200"
    assert document["context_bytes"] > 0
    document["cases"][name]["real"]["allocated"][-1] += 512
    path.write_text(json.dumps(document))
    assert [line.split(":")[0] for line in disagreements(path, BY_NAME[name])] == ["leaky allocated"]


def test_the_table_covers_what_was_asked() -> None:
    """A case that drops out of the table is a kind of program that is no longer proved."""
    kinds = ("fp32", "autocast", "channels-last", "checkpointing", "lora", "compile", "lstm", "out-of-memory")
    assert len(BY_NAME) == len(CASES) >= 14
    for kind in kinds:
        assert any(kind in case.name for case in CASES), kind

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
    leaky = BY_NAME["leaky"]
    truth = run_case(leaky, null_environment("h200"))
    path = tmp_path / "measured.json"
    write_comparison(path, {"leaky": truth}, {"leaky": truth})
    assert held_cases(path) == [leaky]
    assert disagreements(path, leaky) == []
    document = json.loads(path.read_text())
    assert document["gpu"]["name"] == "NVIDIA H200"
    assert document["context_bytes"] > 0
    document["cases"]["leaky"]["real"]["allocated"][-1] += 512
    assert [line.split(":")[0] for line in differences(leaky, document["cases"]["leaky"]["real"], truth)] == [
        "leaky allocated"
    ]
    document["versions"]["torch"] = "0.0"
    path.write_text(json.dumps(document))
    assert ["measure again" in line for line in disagreements(path, leaky)] == [True]


def test_workspaces_bound_what_may_differ() -> None:
    """cuDNN's choice excuses no more than its largest workspace, and nothing that stays after the step."""
    case = BY_NAME["unet-fp32"]
    operation = {"op": "convolution", "tensors": [], "arguments": []}
    real = {"allocated": [1000], "reserved": [9], "after": [5], "retries": 0, "out_of_memory": ""}
    real["workspaces"] = [{**operation, "bytes": 140}]
    null = {**real, "workspaces": [{**operation, "bytes": 40}]}
    assert differences(case, real, {**null, "allocated": [900], "reserved": [7]}) == []
    assert len(differences(case, real, {**null, "allocated": [899]})) == 1
    assert len(differences(case, real, {**null, "after": [6]})) == 1
    assert len(differences(case, real, {**null, "out_of_memory": "CUDA out of memory."})) == 1


def test_the_table_covers_what_was_asked() -> None:
    """A case that drops out of the table is a kind of program that is no longer proved."""
    kinds = ("fp32", "autocast", "channels-last", "checkpointing", "lora", "compile", "lstm", "out-of-memory")
    assert len(BY_NAME) == len(CASES) >= 14
    for kind in kinds:
        assert any(kind in case.name for case in CASES), kind

"""What grew between two runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.report.samples import GIB, MIB, gpt2, module_row
from vramdoc.analysis.difference import Change, changes, difference, own_sizes
from vramdoc.analysis.footprint import footprint, function_key, layer_names
from vramdoc.report import LineRow


def line(code: str, size: int, function: str = "forward", number: int = 1) -> LineRow:
    return LineRow(file="m.py", line=number, function=function, code=code, bytes=size, blocks=1)


def test_largest_growth_first_shrinkage_last() -> None:
    """A reader looks at the first rows only."""
    found = changes({"a": 5, "b": 5, "gone": 3, "same": 7}, {"a": 6, "b": 9, "new": 2, "same": 7})
    assert [(change.name, change.grown) for change in found] == [("b", 4), ("new", 2), ("a", 1), ("gone", -3)]


def test_layers_count_together() -> None:
    """The layers of a stack have one name; the parts of a Sequential, and leaves, keep theirs."""
    kinds = {
        "": "Model",
        "blocks": "ModuleList",
        "blocks.0": "Block",
        "blocks.0.mlp": "Sequential",
        "blocks.0.mlp.0": "Linear",
        "blocks.0.mlp.2": "Linear",
        "blocks.1": "Block",
        "blocks.1.mlp": "Sequential",
        "blocks.1.mlp.0": "Linear",
        "ends": "Sequential",
        "ends.0": "Encoder",
        "ends.0.in": "Linear",
        "ends.1": "Head",
        "ends.1.out": "Linear",
    }
    names = layer_names([module_row(name, kind, 1, 1) for name, kind in kinds.items()])
    assert names["blocks.1.mlp.0"] == "blocks.*.mlp.0"
    assert names["blocks.0"] == "blocks.*"
    assert names["ends.1.out"] == "ends.1.out"
    assert names[""] == ""


def test_files_have_the_same_name_on_every_machine(tmp_path: Path) -> None:
    """A baseline is read where the repository and the packages lie elsewhere."""
    target = str(tmp_path / "repository/models/model.py")
    files = {
        "model.py": "model.py",
        str(tmp_path / "repository/layers/wide.py"): "../layers/wide.py",
        "/opt/venv/lib/python3.11/site-packages/torch/optim/adamw.py": "torch/optim/adamw.py",
        str(tmp_path / "repository/.venv/lib/python3.12/site-packages/x/y.py"): "x/y.py",
        "/elsewhere/z.py": "/elsewhere/z.py",
    }
    rows = [replace(line("x", 1), file=file) for file in files]
    assert [function_key(row, target) for row in rows] == [f"{name} forward" for name in files.values()]


def test_own_sizes() -> None:
    """A parent that only holds its children holds nothing, also where a level between them has no row."""
    assert own_sizes({"": 100, "a": 60, "a.b.c": 60, "d": 30}) == {"": 10, "a": 0, "a.b.c": 60, "d": 30}


def test_edited_line_is_compared_with_its_old_self() -> None:
    """A line's growth is what it gained, not all that it holds, though its code and its number are others."""
    before = replace(gpt2(), lines=(line("scores = q @ k", 3 * GIB), line("return x", GIB), line("gone = 1", GIB)))
    after = replace(
        gpt2(),
        lines=(
            line("scores = (q @ k).float()", 6 * GIB, number=9),
            line("return x", GIB),
            line("new_and_other(y)", 2 * GIB),
            line("return x", 512 * MIB, "other"),
        ),
    )
    found = difference(footprint(before), footprint(after)).lines
    assert [(change.code, change.grown // MIB) for change in found] == [
        ("scores = (q @ k).float()", 3072),
        ("new_and_other(y)", 2048),
        ("return x", 512),
        ("gone = 1", -1024),
    ]


def test_nothing_changed() -> None:
    """The same report differs in nothing; its totals are told all the same."""
    found = difference(footprint(gpt2()), footprint(gpt2()))
    assert found.is_empty
    assert found.totals[1] == Change(
        name="reserved", before=gpt2().peak.reserved_bytes, after=gpt2().peak.reserved_bytes
    )

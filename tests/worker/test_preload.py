"""What the zygote imports ahead of its children."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramdoc.worker.preload import SAFE, preload


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder on the path with a package of one of the known names, not imported yet."""
    folder = tmp_path / "site"
    (folder / "einops").mkdir(parents=True)
    (folder / "einops" / "__init__.py").write_text("value = 7\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "einops", raising=False)
    yield
    sys.modules.pop("einops", None)


@pytest.mark.usefixtures("package")
def test_known_packages_are_imported(tmp_path: Path) -> None:
    """What a target imports at its top is there before the fork."""
    target = tmp_path / "model.py"
    target.write_text("from einops import value, missing\n")
    preload(target)
    assert sys.modules["einops"].value == 7


@pytest.mark.usefixtures("package")
def test_only_known_packages_at_the_top(tmp_path: Path) -> None:
    """The user's own modules run in the child alone, and what a function imports may never be imported."""
    assert "helpers" not in SAFE
    (tmp_path / "helpers.py").write_text("raise SystemExit\n")
    target = tmp_path / "model.py"
    target.write_text("import helpers\ndef build_model():\n    import einops\n")
    preload(target)
    assert "einops" not in sys.modules


@pytest.mark.usefixtures("package")
def test_a_file_beside_the_target_comes_first(tmp_path: Path) -> None:
    """A local module of the same name is the one that the target means."""
    (tmp_path / "einops.py").write_text("value = 1\n")
    target = tmp_path / "model.py"
    target.write_text("import einops\n")
    preload(target)
    assert "einops" not in sys.modules


@pytest.mark.parametrize("source", ["import transformers.nothing_of_the_kind\n", "def (\n", "\0"])
def test_what_fails_is_left_to_the_child(tmp_path: Path, source: str) -> None:
    """An error belongs to the run, where the user sees it."""
    target = tmp_path / "model.py"
    target.write_text(source)
    preload(target)

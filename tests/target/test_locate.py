"""From what the user typed to a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from vramdoc.errors import UsageError
from vramdoc.target import locate


def test_finds_the_file(tmp_path: Path) -> None:
    """A file is found and made absolute."""
    file = tmp_path / "model.py"
    file.write_text("")
    assert locate(file) == file.resolve()


def test_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    """A slip of the finger is answered with the file that was meant."""
    (tmp_path / "model.py").write_text("")
    with pytest.raises(UsageError, match="no such file") as caught:
        locate(tmp_path / "modle.py")
    assert str(tmp_path / "model.py") in caught.value.hint


@pytest.mark.parametrize(("name", "message"), [(".", "is a folder"), ("weights.bin", "is not a Python file")])
def test_what_cannot_be_a_target(tmp_path: Path, name: str, message: str) -> None:
    """Folders and other files are refused before a worker starts."""
    (tmp_path / "weights.bin").write_bytes(b"\0")
    with pytest.raises(UsageError, match=message):
        locate(tmp_path / name)

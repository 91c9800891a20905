"""What a terminal can show, and files that are whole or not there."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from vramdoc.cli import output

TERMINAL = {"TERM": "xterm-256color"}


class Stream(io.StringIO):
    """A stream that says whether it is a terminal, and of which encoding."""

    def __init__(self, *, terminal: bool = True, encoding: str | None = "utf-8") -> None:
        super().__init__()
        self._terminal, self._encoding = terminal, encoding

    def isatty(self) -> bool:
        return self._terminal

    @property
    def encoding(self) -> str | None:  # type: ignore[override]
        return self._encoding


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        (TERMINAL, True, "256"),
        (TERMINAL, False, None),
        ({"TERM": "xterm"}, True, "standard"),
        (TERMINAL | {"COLORTERM": "truecolor"}, True, "truecolor"),
        (TERMINAL | {"NO_COLOR": "1", "COLORTERM": "truecolor"}, True, None),
        (TERMINAL | {"NO_COLOR": ""}, True, "256"),  # set but empty asks for nothing: no-color.org
        ({"TERM": "dumb"}, True, None),
    ],
)
def test_color_system(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], terminal: bool, expected: str | None
) -> None:
    """Escapes only where they are understood and wanted."""
    for name in ("TERM", "COLORTERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert output.color_system(Stream(terminal=terminal)) == expected


@pytest.mark.parametrize(
    ("encoding", "expected"), [("utf-8", False), ("UTF8", False), ("ascii", True), ("cp1252", True), (None, True)]
)
def test_is_ascii(encoding: str | None, expected: bool) -> None:
    """Blocks and marks need UTF-8; every other encoding lacks some of them."""
    assert output.is_ascii(Stream(encoding=encoding)) is expected


def test_write_replaces_the_file_at_once(tmp_path: Path) -> None:
    """A reader sees the old report or the new one, and nothing else is left in the folder."""
    path = tmp_path / "report.json"
    path.write_text("old")
    output.write(path, "new \N{MULTIPLICATION SIGN}")
    assert path.read_text(encoding="utf-8") == "new \N{MULTIPLICATION SIGN}"
    assert list(tmp_path.iterdir()) == [path]


def test_write_keeps_the_usual_permissions(tmp_path: Path) -> None:
    """A report is as readable as any file that the user makes, not private like a temporary one."""
    output.write(tmp_path / "report.json", "x")
    (tmp_path / "other").write_text("x")
    assert (tmp_path / "report.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk must not leave half a report behind, nor damage the one that was there."""
    path = tmp_path / "report.json"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        output.write(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]

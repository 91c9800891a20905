"""The tree's own rules: lint, format and types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_tools_find_nothing(command: str) -> None:
    """What a reviewer would otherwise have to say is said here."""
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr

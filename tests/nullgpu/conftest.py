"""Fixtures of the null GPU's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def not_provided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Makes the null GPUs of this test keep a log; returns what names the calls that they did not provide."""
    path = tmp_path / "engine.log"
    path.touch()
    monkeypatch.setenv("VRAMDOC_NULLGPU_LOG", str(path))

    def names() -> list[str]:
        prefix = "not provided: "
        lines = path.read_text(encoding="utf-8").splitlines()
        return [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]

    return names

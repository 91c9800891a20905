"""``--vram-json``: the figures of every test that ran on the null GPU, as one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vramdoc import __version__

ATTRIBUTE = "vram"
"""Where a report carries its test's figures; reports keep their attributes on the way from an xdist worker."""


class FigureFile:
    """Gathers figures from the reports of the call phase, and writes them when the run ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remembers what a report carries; a rerun of a test replaces it."""
        figures: dict[str, Any] | None = getattr(report, ATTRIBUTE, None)
        if figures is not None:
            self._tests[report.nodeid] = {"test": report.nodeid, "outcome": report.outcome, **figures}

    def pytest_sessionfinish(self) -> None:
        """Writes the file, sorted, so that two runs differ where their figures do. Raises ``pytest.UsageError``."""
        tests = [self._tests[nodeid] for nodeid in sorted(self._tests)]
        text = json.dumps({"vramdoc_version": __version__, "tests": tests}, indent=2) + "\n"
        try:
            self._path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise pytest.UsageError(f"--vram-json: cannot write {self._path}: {error.strerror}") from None

"""Runs the command line in this process, on a runner that measures nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.report.samples import gpt2
from vramdoc import runner
from vramdoc.cli import main
from vramdoc.report import Report


@dataclass
class FakeRunner:
    """Stands in for ``vramdoc.runner.profile``: remembers its calls, and answers with ``outcome``."""

    outcome: Report | BaseException = field(default_factory=gpt2)
    calls: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, target: str, **arguments: Any) -> Report:
        self.calls.append({"target": target, **arguments})
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project as the current folder, and an environment that says nothing."""
    for name in ("TARGET", "GPU", "BATCH_SIZE", "STEPS", "TIMEOUT", "ASSUME"):
        monkeypatch.delenv(f"VRAMDOC_{name}", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fake(project: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRunner:  # noqa: ARG001
    """The runner's stand-in."""
    fake = FakeRunner()
    monkeypatch.setattr(runner, "profile", fake)
    return fake


@pytest.fixture
def vramdoc(project: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:  # noqa: ARG001
    """Runs ``vramdoc`` with arguments and gives its exit code and what it printed."""

    def run(*arguments: str) -> Ran:
        code = main(arguments)
        printed = capsys.readouterr()
        return Ran(code=code, out=printed.out, err=printed.err)

    return run

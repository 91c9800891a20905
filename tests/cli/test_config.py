"""Where settings come from, and which one wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from vramdoc.cli.config import Project, Settings, find_project, resolve
from vramdoc.errors import UnknownGpuError, UsageError


def pyproject(folder: Path, text: str) -> Project:
    """The project of ``folder`` with ``text`` in its ``[tool.vramdoc]``."""
    (folder / "pyproject.toml").write_text(f"[project]\nname = 'x'\n[tool.vramdoc]\n{text}\n")
    return find_project(folder)


def test_flags_over_environment_over_pyproject(tmp_path: Path) -> None:
    """Each setting by itself comes from the highest place that says it."""
    project = pyproject(tmp_path, "gpu = 't4'\nbatch_size = 1\nsteps = 3\ntimeout = 5")
    environment = {"VRAMDOC_GPU": "a40", "VRAMDOC_BATCH_SIZE": "2", "VRAMDOC_TIMEOUT": "7.5"}
    settings = resolve(Settings(gpu="h100"), project, environment)
    assert settings == Settings(gpu="h100", batch_size=2, steps=3, timeout=7.5)


def test_assumptions_are_joined_rule_by_rule(tmp_path: Path) -> None:
    """Setting one rule on the command line does not undo another in pyproject.toml."""
    project = pyproject(tmp_path, "assume = { routing = 'skewed', index = 'half' }")
    settings = resolve(Settings(assume={"index": "one"}), project, {"VRAMDOC_ASSUME": "all=false"})
    assert settings.assume == {"routing": "skewed", "index": "one", "all": "false"}


def test_target_is_relative_to_its_pyproject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same target from every folder of the project, named as it is reached from there."""
    pyproject(tmp_path, "target = 'models/gpt2.py'")
    (tmp_path / "models/deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "models/deep")
    project = find_project(Path.cwd())
    assert project.folder == tmp_path
    assert project.settings.target == "../gpt2.py"


def test_no_pyproject(tmp_path: Path) -> None:
    """Where there is no project, the folder itself is it. The root of the file system has none."""
    assert find_project(Path("/")) == Project(folder=Path("/"), settings=Settings())
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert find_project(tmp_path).settings == Settings()


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("bach_size = 1", "unknown key 'bach_size'", "did you mean batch_size?"),
        ("batch-size = 1", "unknown key 'batch-size'", "did you mean batch_size?"),
        ("colour = 'red'", "unknown key 'colour'", "the keys are target, gpu"),
        ("budgets = []", "unknown key 'budgets'", "did you mean budget?"),
        ("batch_size = '8'", "batch_size in .*: Expected `int", ""),
        ("gpu = 5", "gpu in .*: Expected `str", ""),
        ("assume = ['routing=skewed']", "assume in .*: Expected `object", ""),
        ("assume = { routing = 1 }", "assume", ""),
        ("gpu = ", "cannot read .*pyproject.toml: ", ""),
    ],
)
def test_mistakes_in_pyproject(tmp_path: Path, text: str, message: str, hint: str) -> None:
    """The message names the key and the file; an unknown key is never ignored."""
    with pytest.raises(UsageError, match=message) as caught:
        pyproject(tmp_path, text)
    assert str(tmp_path) in caught.value.message
    assert caught.value.hint.startswith(hint)


def test_table_of_another_kind(tmp_path: Path) -> None:
    """``tool.vramdoc = 3`` is no table."""
    (tmp_path / "pyproject.toml").write_text("[tool]\nvramdoc = 3\n")
    with pytest.raises(UsageError, match="is not a table"):
        find_project(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(batch_size=0), "batch size must be at least 1, not 0"),
        (Settings(steps=-1), "steps must be at least 1, not -1"),
        (Settings(timeout=float("inf")), "timeout must be a number of seconds above 0"),
        (Settings(assume={"routing": "wild"}), "unknown choice for routing"),
    ],
)
def test_values_are_checked_wherever_they_come_from(tmp_path: Path, settings: Settings, message: str) -> None:
    """A batch of 0 in pyproject.toml is as wrong as on the command line."""
    with pytest.raises(UsageError, match=message):
        resolve(settings, Project(folder=tmp_path, settings=Settings()), {})
    with pytest.raises(UsageError, match=message):
        resolve(Settings(), Project(folder=tmp_path, settings=settings), {})


def test_environment_is_checked(tmp_path: Path) -> None:
    """A variable that is no number is named."""
    project = Project(folder=tmp_path, settings=Settings())
    with pytest.raises(UsageError, match="batch_size in the environment"):
        resolve(Settings(), project, {"VRAMDOC_BATCH_SIZE": "many"})
    with pytest.raises(UnknownGpuError):
        resolve(Settings(), project, {"VRAMDOC_GPU": "h1000"})
    assert resolve(Settings(), project, {"VRAMDOC_GPU": ""}) == Settings()

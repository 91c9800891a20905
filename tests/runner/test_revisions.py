"""Targets as they were in git revisions, without a trace in the user's tree or repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from vramdoc.errors import TargetError, UsageError
from vramdoc.report import Report
from vramdoc.runner import many, revisions
from vramdoc.runner.many import Wanted
from vramdoc.runner.revisions import checked_out, parse_range, profile_revisions

MODEL = """
import sys
from pathlib import Path
sys.path.append(str(Path(__file__).parent.parent / "layers"))

from torch import nn, zeros
from sizes import WIDTH
from wide import Wide

def build_model():
    return Wide(WIDTH)

def make_batch(batch_size):
    return zeros(batch_size, WIDTH)
"""
LAYERS = """
from torch import nn

class Wide(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width, bias=False)

    def forward(self, x):
        return self.inner(x).exp()
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two revisions of a model whose width is in a file beside it, and a tree that differs from both."""
    root = tmp_path / "repository"
    models = root / "models"
    models.mkdir(parents=True)
    git(root, "init", "-q")
    (root / ".gitattributes").write_text("models/sizes.py export-ignore\n")
    (models / "model.py").write_text(MODEL)
    (root / "layers").mkdir()
    (root / "layers/wide.py").write_text(LAYERS)
    for width in (512, 1024):
        (models / "sizes.py").write_text(f"WIDTH = {width}\n")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", f"width {width}")
    (models / "sizes.py").write_text("WIDTH = 2048  # not committed\n")
    (models / "untracked.py").write_text("")
    return root


def everything(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below ``root``, git's own too, with its time of change and content."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(root.rglob("*")) if path.is_file()
    }


def test_each_revision_by_itself(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures are those of each revision's own files, imported ones too, and nothing of the user's is touched."""
    monkeypatch.chdir(repository / "models")
    before = everything(repository)
    reports = profile_revisions(["HEAD~1", "HEAD"], Wanted(target="model.py", gpu="a100-40"))
    first, second = (report for report in reports if isinstance(report, Report))
    assert (first.categories["parameters"], second.categories["parameters"]) == (512 * 512 * 4, 1024 * 1024 * 4)
    assert first.target == second.target == "model.py"
    assert first.lines[0].file == second.lines[0].file == str(repository / "layers/wide.py")
    assert everything(repository) == before


def test_checkout_is_whole_and_goes_away(repository: Path) -> None:
    """Also files that git archive would leave out; none that is not committed."""
    with checked_out(repository, "main~1") as folder:
        assert (folder / "models/sizes.py").read_text() == "WIDTH = 512\n"
        assert not (folder / "models/untracked.py").exists()
        assert folder.parent not in repository.parents
    assert not folder.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("main..HEAD", ("main", "HEAD")), ("v1..", ("v1", "HEAD")), ("HEAD~2", ("HEAD~2", None))],
)
def test_ranges(text: str, expected: tuple[str, str | None]) -> None:
    """As git writes them; one revision alone is compared with the files as they are."""
    assert parse_range(text) == expected


@pytest.mark.parametrize("text", ["", "..", "..HEAD", "main...HEAD"])
def test_nonsense_ranges(text: str) -> None:
    """Three dots mean something else in git."""
    with pytest.raises(UsageError, match="not a range of revisions"):
        parse_range(text)


@pytest.mark.parametrize(
    ("revision", "target", "message"),
    [
        ("nowhere", "models/model.py", "no revision is called 'nowhere'"),
        ("--help", "models/model.py", "no revision is called '--help'"),
        ("HEAD", "models/untracked.py", "there is no models/untracked.py in HEAD"),
    ],
)
def test_what_cannot_be_had(
    repository: Path, monkeypatch: pytest.MonkeyPatch, revision: str, target: str, message: str
) -> None:
    """Said before anything is run."""
    monkeypatch.chdir(repository)
    with pytest.raises(UsageError, match=message):
        profile_revisions([revision], Wanted(target=target, gpu="a100-40"))


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that git does not know."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError, match="is not in a git repository"):
        profile_revisions(["HEAD"], Wanted(target="model.py"))


def test_error_of_a_revision_is_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process in a checkout says comes back as the error that it was."""

    def profile(*_: object, **__: object) -> Report:
        raise TargetError("no model", hint="define it", traceback="File m.py, line 3")

    monkeypatch.setattr(many, "profile", profile)
    answer = revisions._answer(Wanted(target="m.py"))
    error = revisions._as_exception(answer.error)
    assert isinstance(error, TargetError)
    assert (error.message, error.hint, error.traceback) == ("no model", "define it", "File m.py, line 3")

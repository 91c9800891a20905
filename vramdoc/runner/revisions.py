"""Profiles a target as it was in revisions of its git repository, without a trace in the user's tree or repository.

Each revision is written to a temporary folder, through an index of its own, and profiled by a process that works there:
``python -m vramdoc.runner.revisions`` is that process. What the target imports from folders of the repository is then
that revision's too, also through PYTHONPATH. Packages that are installed in editable mode are still the user's tree.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from vramdoc import errors
from vramdoc.errors import TargetError, UsageError, VramdocError, WorkerError
from vramdoc.report import Report
from vramdoc.runner.many import Outcome, Wanted, profile_many
from vramdoc.runner.progress import Listener, Progress, ignore

_PACKAGE_ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What the process in the checkout says: exactly one of the two."""

    report: Report | None = None
    error: _Error | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Error:
    """An error of :mod:`vramdoc.errors`."""

    kind: str  # name of its class
    message: str
    hint: str
    traceback: str = ""


def parse_range(text: str) -> tuple[str, str | None]:
    """``A..B`` as two revisions, ``A..`` as A and HEAD, ``A`` as A and None: the files as they are.

    Raises :class:`UsageError`.
    """
    first, dots, second = text.partition("..")
    if not first or second.startswith("."):
        raise UsageError(f"not a range of revisions: {text!r}", hint="write --rev main..HEAD, or --rev main")
    return first, (second or "HEAD") if dots else None


def profile_revisions(
    revisions: Sequence[str | None], wanted: Wanted, *, progress: Listener | None = None
) -> tuple[Outcome, ...]:
    """A report of ``wanted``, or the error that there was instead, for each of ``revisions``; None: as it is now.

    Raises :class:`UsageError` where a revision or the target in it cannot be had.
    """
    root = _repository(Path(wanted.target).absolute().parent)
    relative = replace(wanted, target=os.path.relpath(Path(wanted.target).absolute(), Path.cwd()))
    listener = progress or ignore
    listener(Progress(stage="checking out"))
    with ExitStack() as stack:
        folders = [None if each is None else stack.enter_context(checked_out(root, each)) for each in revisions]
        for revision, folder in zip(revisions, folders, strict=True):
            if folder is not None:
                _check_target(Path(relative.target), revision or "", root, folder)
        listener(Progress(stage="profiling", total=len(revisions)))
        with ThreadPoolExecutor(len(revisions)) as pool:
            return tuple(pool.map(lambda folder: _profile(relative, root, folder), folders))


@contextmanager
def checked_out(root: Path, revision: str) -> Iterator[Path]:
    """A temporary folder with the files of ``revision`` of the repository at ``root``. Raises :class:`UsageError`."""
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise UsageError(f"no revision is called {revision!r} in {root}", hint="git fetch may be needed first")
    with tempfile.TemporaryDirectory(prefix="vramdoc-") as name:
        folder = Path(name).resolve() / "tree"
        folder.mkdir()
        # With an index of its own git reads from the repository and writes nothing to it.
        index = {"GIT_INDEX_FILE": str(folder.parent / "index")}
        for arguments in (("read-tree", commit), ("checkout-index", "--all", "--force", f"--prefix={folder}/")):
            if _git(root, *arguments, environment=index) is None:
                raise UsageError(f"git cannot check out {revision!r} of {root}", hint="git status may say why")
        yield folder


def _repository(folder: Path) -> Path:
    while not folder.is_dir():
        folder = folder.parent
    root = _git(folder, "rev-parse", "--show-toplevel")
    if root is None:
        raise UsageError(f"{folder} is not in a git repository", hint="--rev needs one; compare two reports instead")
    return Path(root)


def _git(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> str | None:
    """What git prints, without the end of its line; None where it fails."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise UsageError("git is not installed", hint="--rev needs it; compare two reports instead") from None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


def _check_target(target: Path, revision: str, root: Path, folder: Path) -> None:
    inside = target.absolute().resolve()
    if not inside.is_relative_to(root):
        raise UsageError(f"{target} is not in the repository {root}")
    if not (folder / inside.relative_to(root)).is_file():
        raise UsageError(f"there is no {target} in {revision}", hint=f"git log -- {target} says when it came")


def _profile(wanted: Wanted, root: Path, folder: Path | None) -> Outcome:
    if folder is None:
        (outcome,) = profile_many([wanted])
        return outcome
    here = Path.cwd().resolve()
    inside = here.relative_to(root) if here.is_relative_to(root) else Path()
    working = folder / inside
    if not working.is_dir():  # the folder that the user is in came later
        wanted = replace(wanted, target=str(Path(wanted.target).resolve().relative_to(root)))
        working = folder
    done = subprocess.run(
        [sys.executable, "-m", "vramdoc.runner.revisions"],
        cwd=working,
        env=_environment(root, folder),
        input=msgspec.json.encode(wanted),
        stdout=subprocess.PIPE,
    )
    try:
        answer = msgspec.json.decode(done.stdout, type=_Answer)
    except msgspec.DecodeError:
        return WorkerError(
            f"the process that profiles {wanted.target} ended with status {done.returncode}", hint="see above"
        )
    return _moved(answer.report, folder, root) if answer.report is not None else _as_exception(answer.error)


def _moved(report: Report, folder: Path, root: Path) -> Report:
    """``report`` with the files of the checkout called as they are in the user's tree, so that runs compare."""

    def name(file: str) -> str:
        return str(root / Path(file).relative_to(folder)) if Path(file).is_relative_to(folder) else file

    return replace(
        report,
        lines=tuple(replace(row, file=name(row.file)) for row in report.lines),
        largest=tuple(replace(block, file=name(block.file)) for block in report.largest),
    )


def _environment(root: Path, folder: Path) -> dict[str, str]:
    """This process's environment with its folders of the repository moved to the checkout, and this very vramdoc."""
    inherited = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    moved = [
        str(folder / Path(entry).resolve().relative_to(root)) if Path(entry).resolve().is_relative_to(root) else entry
        for entry in inherited
    ]
    # The checkout may hold another vramdoc: the working folder must not come first on the path.
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(_PACKAGE_ROOT), *moved]), "PYTHONSAFEPATH": "1"}


def _as_exception(error: _Error | None) -> VramdocError:
    assert error is not None, "an answer holds one of the two"
    kind: type[VramdocError] = getattr(errors, error.kind, VramdocError)
    if issubclass(kind, TargetError):
        return kind(error.message, hint=error.hint, traceback=error.traceback)
    return kind(error.message, hint=error.hint)


def _answer(wanted: Wanted) -> _Answer:
    (outcome,) = profile_many([wanted])
    if isinstance(outcome, Report):
        return _Answer(report=outcome)
    return _Answer(
        error=_Error(
            kind=type(outcome).__name__,
            message=outcome.message,
            hint=outcome.hint,
            traceback=getattr(outcome, "traceback", ""),
        )
    )


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(_answer(msgspec.json.decode(sys.stdin.buffer.read(), type=Wanted))))

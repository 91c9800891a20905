"""``vramdoc profile``: what it passes on, what it prints where, and what it writes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import FakeRunner, Ran
from tests.report.samples import gpt2, leaky, too_big
from vramdoc.errors import InstallError, TargetError, TargetTimeoutError, UsageError, WorkerError
from vramdoc.report import decode
from vramdoc.runner import Progress

Run = Callable[..., Ran]


def test_arguments_reach_the_runner(fake: FakeRunner, vramdoc: Run) -> None:
    """Every flag means what it says."""
    ran = vramdoc(
        *("profile", "model.py", "--gpu", "h100", "--batch-size", "16", "--steps", "4", "--timeout", "30"),
        *("--assume", "routing=skewed", "--assume", "index=half"),
    )
    assert ran.code == 0
    (call,) = fake.calls
    assert call == {
        "target": "model.py",
        "gpu": "h100",
        "batch_size": 16,
        "steps": 4,
        "timeout": 30.0,
        "assume": {"routing": "skewed", "index": "half"},
        "progress": None,  # no terminal
    }


def test_defaults(fake: FakeRunner, vramdoc: Run) -> None:
    """Without flags the target and the machine decide; a run may take ten minutes."""
    assert vramdoc("profile", "model.py").code == 0
    assert fake.calls[0]["timeout"] == 600.0
    assert {fake.calls[0][name] for name in ("gpu", "batch_size", "steps", "assume")} == {None}


def test_result_on_stdout_and_nothing_else(fake: FakeRunner, vramdoc: Run) -> None:  # noqa: ARG001
    """The view is plain where stdout is no terminal, and stderr stays silent when all is well."""
    ran = vramdoc("profile", "model.py")
    assert "✓ Fits NVIDIA A100-SXM4-40GB" in ran.out
    assert "\x1b" not in ran.out
    assert ran.err == ""


def test_json_on_stdout_warnings_on_stderr(fake: FakeRunner, vramdoc: Run) -> None:
    """``vramdoc profile --json | jq`` must read JSON, warnings or not."""
    fake.outcome = leaky()
    ran = vramdoc("profile", "model.py", "--json")
    assert decode(ran.out) == leaky()
    assert ran.err.startswith("warning: the peak still rose")
    assert "warning: the attributed pass" in ran.err


def test_quiet(fake: FakeRunner, vramdoc: Run) -> None:
    """One line; a step that does not fit is a finding, not a failure."""
    fake.outcome = too_big()
    ran = vramdoc("profile", "model.py", "--quiet")
    assert ran.out == "✗ Does not fit NVIDIA GeForce RTX 4090: 15.88 GiB short\n"
    assert ran.code == 0


@pytest.mark.parametrize("suffix", [".json", ".txt", ".md", ".html", ".svg"])
def test_output_file(fake: FakeRunner, vramdoc: Run, project: Path, suffix: str) -> None:  # noqa: ARG001
    """-o writes the format of the ending beside the view, and leaves nothing else."""
    ran = vramdoc("profile", "model.py", "-o", f"report{suffix}")
    assert ran.code == 0
    assert ran.err == f"wrote report{suffix}\n"
    assert "25.97" in ran.out
    assert (project / f"report{suffix}").stat().st_size > 1000
    assert {path.name for path in project.iterdir()} == {".vramdoc", "pyproject.toml", f"report{suffix}"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("report.pdf", "error: cannot tell the format of 'report.pdf': it ends in '.pdf'"),
        ("report", "error: cannot tell the format of 'report': it has no ending"),
        ("nowhere/report.html", "error: cannot write nowhere/report.html: there is no folder nowhere"),
        ("folder.html", "error: cannot write folder.html: it is a folder"),
        ("/proc/report.html", "error: cannot write /proc/report.html: "),
    ],
)
def test_bad_output_is_found_before_the_work(
    fake: FakeRunner, vramdoc: Run, project: Path, name: str, message: str
) -> None:
    """Minutes of measuring must not end in a file that cannot be written."""
    (project / "folder.html").mkdir()
    ran = vramdoc("profile", "model.py", "-o", name)
    assert (ran.code, fake.calls, ran.out) == (2, [], "")
    assert ran.err.startswith(message)
    assert "\nhint: " in ran.err


def test_last_target_is_remembered(fake: FakeRunner, vramdoc: Run, project: Path) -> None:
    """``vramdoc profile`` alone repeats the last one, from any folder of the project."""
    (project / "models").mkdir()
    vramdoc("profile", "models/gpt2.py")
    os.chdir(project / "models")
    assert vramdoc("profile", "--gpu", "h100").code == 0
    assert fake.calls[1]["target"] == "gpt2.py"
    assert decode((project / ".vramdoc/report.json").read_text()) == gpt2()
    assert (project / ".vramdoc/.gitignore").read_text() == "*\n"


def test_nothing_to_profile(fake: FakeRunner, vramdoc: Run) -> None:
    """The first call without a target says what is missing."""
    ran = vramdoc("profile")
    assert (ran.code, fake.calls) == (2, [])
    assert ran.err.startswith("error: nothing to profile: no target was given, and none is remembered\nhint: ")


@pytest.mark.parametrize("content", ["", "{", '{"target": 3}', "[]"])
def test_broken_memory(fake: FakeRunner, vramdoc: Run, project: Path, content: str) -> None:
    """A damaged file of ours is one message that names it."""
    (project / ".vramdoc").mkdir()
    (project / ".vramdoc/last.json").write_text(content)
    ran = vramdoc("profile")
    assert (ran.code, fake.calls) == (2, [])
    assert "last.json" in ran.err
    assert "hint: remove it" in ran.err


def test_memory_that_cannot_be_written(fake: FakeRunner, vramdoc: Run, project: Path) -> None:  # noqa: ARG001
    """The result is there; that it is not remembered is only a warning."""
    (project / ".vramdoc").write_text("a file where the folder should be")
    ran = vramdoc("profile", "model.py")
    assert ran.code == 0
    assert "Fits" in ran.out
    assert ran.err.startswith("warning: cannot remember this report in ")


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (UsageError("no such file: x.py", hint="look again"), 2, "error: no such file: x.py\nhint: look again\n"),
        (InstallError("torch is a CPU build"), 2, "error: torch is a CPU build\n"),
        (WorkerError("the worker was killed by signal 9"), 2, "error: the worker was killed by signal 9\n"),
        (TargetTimeoutError("ran 30 s", hint="--timeout 60"), 3, "error: ran 30 s\nhint: --timeout 60\n"),
        (
            TargetError("build_model raised", hint="fix it", traceback='File "m.py", line 3\n  1 / 0\n'),
            3,
            'error: build_model raised\n  File "m.py", line 3\n    1 / 0\nhint: fix it\n',
        ),
        (TargetError("bad\x1b[31m name\nsecond"), 3, "error: bad\\x1b[31m name\n  second\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)  # fmt: skip
def test_failures(fake: FakeRunner, vramdoc: Run, project: Path, error: BaseException, code: int, printed: str) -> None:
    """One clear message each, the right exit code, nothing on stdout, nothing left behind."""
    fake.outcome = error
    ran = vramdoc("profile", "model.py", "-o", "report.html")
    assert (ran.code, ran.out, ran.err) == (code, "", printed)
    assert [path.name for path in project.iterdir()] == ["pyproject.toml"]


def test_fault_of_ours(fake: FakeRunner, vramdoc: Run) -> None:
    """An error that nobody foresaw is not "a budget failed" (exit code 1), and shows where it came from."""
    fake.outcome = ZeroDivisionError("division by zero")
    ran = vramdoc("profile", "model.py")
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert "error: this is an error of vramdoc itself\nhint: please report it" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch-size", "0"], "error: batch size must be at least 1, not 0"),
        (["--batch-size", "-3"], "error: batch size must be at least 1, not -3"),
        (["--batch-size", "many"], "error: invalid value for '--batch-size': "),
        (["--steps", "0"], "error: steps must be at least 1, not 0"),
        (["--timeout", "0"], "error: timeout must be a number of seconds above 0, not 0"),
        (["--timeout", "nan"], "error: timeout must be a number of seconds above 0, not nan"),
        (["--gpu", "h1000"], "error: no GPU called 'h1000' in the tables\nhint: did you mean h100"),
        (["--assume", "routing"], "error: not an assumption: 'routing'\nhint: "),
        (["--assume", "routng=skewed"], "error: unknown assumption: 'routng'\nhint: did you mean routing?"),
        (["--assume", "routing=wild"], "error: unknown choice for routing: 'wild'\nhint: "),
        (["--gpus", "h100"], "error: no such option: --gpus"),
        (["second.py"], "error: got unexpected extra argument(s) (second.py)\nhint: vramdoc profile --help"),
    ],
)
def test_bad_arguments(fake: FakeRunner, vramdoc: Run, arguments: list[str], message: str) -> None:
    """Typer's complaints and ours look alike, and come before any work."""
    ran = vramdoc("profile", "model.py", *arguments)
    assert (ran.code, ran.out, fake.calls) == (2, "", [])
    assert ran.err.startswith(message)


def test_progress_is_drawn_on_a_terminal_only(fake: FakeRunner, vramdoc: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the runner gets a listener; what it draws goes to stderr, and --quiet silences it."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ran = vramdoc("profile", "model.py", "--quiet")
    assert fake.calls[0]["progress"] is None
    assert ran.err == ""
    vramdoc("profile", "model.py")
    listener = fake.calls[1]["progress"]
    listener(Progress(stage="running steps", done=1, total=3))
    assert "running steps" not in json.dumps(ran.out)

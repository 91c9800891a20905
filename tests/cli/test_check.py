"""``vramdoc check``: what it checks, what it prints where, and how it exits."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran
from tests.cli.test_commands import start
from tests.report.samples import gpt2
from tests.test_bad_input import ENDLESS, environment, workers
from vramdoc.errors import TargetError, VramdocError
from vramdoc.report import Report, encode
from vramdoc.runner import many

Run = Callable[..., Ran]
TWO = """
[tool.vramdoc]
gpu = "t4"
batch_size = 2
[[tool.vramdoc.budget]]
name = "small"
target = "models/small.py"
limit = "8GiB"
message = "Ask the platform team."
[[tool.vramdoc.budget]]
name = "large"
target = "models/large.py"
gpu = "h100"
batch_size = 16
metric = "device"
limit = "80%"
"""


@dataclass
class Profiles:
    """Stands in for the profile: GPT-2 under the name of each target, or the error that is set for it."""

    errors: dict[str, BaseException] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, target: str, **options: Any) -> Report:
        self.calls.append({"target": target, **options})
        if target in self.errors:
            raise self.errors[target]
        return replace(gpt2(), target=target)


@pytest.fixture
def profiles(project: Path, monkeypatch: pytest.MonkeyPatch) -> Profiles:  # noqa: ARG001
    made = Profiles()
    monkeypatch.setattr(many, "profile", made)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return made


@pytest.fixture
def report(project: Path) -> str:
    """A report file; its target needs 12.99 GiB reserved."""
    (project / "report.json").write_text(encode(gpt2()))
    return "report.json"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--budget", "22GiB"), 0, "✓ model.py: 12.99 GiB reserved, 9.01 GiB below the budget of 22.00 GiB\n"),
        (("--budget", "8GiB"), 1, "✗ model.py: 12.99 GiB reserved, 4.99 GiB over the budget of 8.00 GiB\n"),
        (("--budget", "8GiB", "--exit-zero"), 0, "1 check failed\n"),
        (("--budget", "20%", "--metric", "device"), 1, "5.54 GiB over the budget of 7.88 GiB (20%\n"),
        (("--budget", "22GiB", "--quiet"), 0, ""),
        (("--budget", "8GiB", "--quiet"), 1, "1 check failed\n"),
    ],
)
def test_verdict(profiles: Profiles, vramdoc: Run, arguments: tuple[str, ...], code: int, said: str) -> None:  # noqa: ARG001
    """0 where it holds, 1 where it does not; the result is on stdout alone."""
    ran = vramdoc("check", "model.py", "--gpu", "a100-40", *arguments)
    assert (ran.code, ran.err) == (code, "")
    assert said in ran.out
    assert bool(ran.out) is bool(said)


def test_arguments_reach_the_runner(profiles: Profiles, vramdoc: Run) -> None:
    """Every flag means what it means to ``vramdoc profile``."""
    flags = ("--gpu", "h100", "--batch-size", "16", "--steps", "4", "--timeout", "30", "--assume", "index=half")
    assert vramdoc("check", "model.py", "--budget", "22GiB", *flags).code == 0
    assert [{key: value for key, value in call.items() if key != "progress"} for call in profiles.calls] == [
        {
            "target": "model.py",
            "gpu": "h100",
            "batch_size": 16,
            "steps": 4,
            "timeout": 30.0,
            "assume": {"index": "half"},
        }
    ]


def test_budgets_of_the_project(profiles: Profiles, vramdoc: Run, project: Path) -> None:
    """All in one go, in their order, each with its own settings over those of the project."""
    (project / "pyproject.toml").write_text(TWO)
    ran = vramdoc("check")
    assert ran.code == 1
    assert [line[:7] for line in ran.out.splitlines() if line[:1] in ("✓", "✗")] == ["✗ small", "✓ large"]
    assert "note     Ask the platform team." in ran.out
    calls = {call["target"]: (call["gpu"], call["batch_size"]) for call in profiles.calls}
    assert calls == {"models/small.py": ("t4", 2), "models/large.py": ("h100", 16)}


def test_flags_and_environment_win(
    profiles: Profiles, vramdoc: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flags over the environment over a budget's own keys over those of the project."""
    (project / "pyproject.toml").write_text(TWO)
    monkeypatch.setenv("VRAMDOC_GPU", "a40")
    monkeypatch.setenv("VRAMDOC_TARGET", "other.py")  # not the budgets': each has its own
    vramdoc("check", "--batch-size", "5")
    assert {(call["target"], call["gpu"], call["batch_size"]) for call in profiles.calls} == {
        ("models/small.py", "a40", 5),
        ("models/large.py", "a40", 5),
    }


@pytest.mark.parametrize(
    ("arguments", "checked"),
    [
        (("models/large.py",), ["large"]),
        (("--name", "small"), ["small"]),
        (("models/large.py", "--budget", "1GiB"), ["models/large.py"]),
        (("models/large.py", "--budget", "1GiB", "--name", "mine"), ["mine"]),
    ],
)
def test_some_of_the_budgets(
    profiles: Profiles,  # noqa: ARG001
    vramdoc: Run,
    project: Path,
    arguments: tuple[str, ...],
    checked: list[str],
) -> None:
    """Those about the target named, the one named, or that of the command line alone."""
    (project / "pyproject.toml").write_text(TWO)
    shown = json.loads(vramdoc("check", *arguments, "--output-format", "json").out)
    assert [check["name"] for check in shown["checks"]] == checked


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("nmae = 'a'\nlimit = '1GiB'", "unknown key 'nmae' in [[tool.vramdoc.budget]]", "did you mean name?"),
        ("name = 'a'\nlimit = '1GiB'\nbatch-size = 3", "unknown key 'batch-size'", "did you mean batch_size?"),
        ("name = 'a'", "`limit`", ""),
        ("limit = '1GiB'", "`name`", ""),
        ("name = ''\nlimit = '1GiB'", "has an empty name", "name what"),
        ("name = 'a'\nlimit = 22", "limit in", ""),
        ("name = 'a'\nlimit = '22'", "limit of 'a', '22' has no unit", "write a size"),
        ("name = 'a'\nlimit = '22 GB/s'", "neither a size nor a share", "write a size"),
        ("name = 'a'\nlimit = '1GiB'\nmetric = 'reserve'", "metric of 'a', 'reserve'", "did you mean reserved?"),
        (
            "name = 'a'\nlimit = '1GiB'\n[[tool.vramdoc.budget]]\nname = 'a'\nlimit = '2GiB'",
            "two budgets are called 'a'",
            "give each",
        ),
    ],
)
def test_mistakes_in_pyproject(
    profiles: Profiles, vramdoc: Run, project: Path, text: str, message: str, hint: str
) -> None:
    """Found before any work; a budget that says nothing must not pass."""
    (project / "pyproject.toml").write_text(f"[[tool.vramdoc.budget]]\n{text}\n")
    ran = vramdoc("check")
    assert (ran.code, ran.out, profiles.calls) == (2, "", [])
    assert message in ran.err
    assert not hint or f"hint: {hint}" in ran.err


def test_budget_that_is_no_list(profiles: Profiles, vramdoc: Run, project: Path) -> None:  # noqa: ARG001
    """``budget = "22GiB"`` is an obvious guess."""
    (project / "pyproject.toml").write_text('[tool.vramdoc]\nbudget = "22GiB"\n')
    ran = vramdoc("check")
    assert (ran.code, ran.out) == (2, "")
    assert "hint: begin each with [[tool.vramdoc.budget]]" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "error: there is nothing to check against\nhint: give --budget 22GiB"),
        (("--baseline", "b.json"), "error: there is nothing to check against\nhint: add --fail-on-increase peak:3%"),
        (("--fail-on-increase", "peak:3%"), "error: --fail-on-increase needs something to compare with"),
        (("--budget", "22"), "error: budget '22' has no unit"),
        (("--budget", "22GiB", "--metric", "reservd"), "error: metric 'reservd' is not one of"),
        (
            ("--budget", "22GiB", "--output-format", "sarf"),
            "error: no output format is called 'sarf'\nhint: did you me",
        ),
        (
            ("--budget", "22GiB", "--baseline", "b.json"),
            "error: there is no baseline b.json\nhint: vramdoc baseline up",
        ),
        (("--budget", "22GiB", "-o", "no/x.xml"), "error: cannot write no/x.xml: there is no folder"),
        (("--budget", "22GiB", "--jobs", "0"), "error: jobs must be at least 1, not 0"),
        (("--budget", "22GiB", "--fail-on-increase", "peak"), "error: not a tolerance: 'peak'"),
    ],
)
def test_bad_arguments(profiles: Profiles, vramdoc: Run, arguments: tuple[str, ...], message: str) -> None:
    """Exit code 2 and one message, before any work."""
    ran = vramdoc("check", "model.py", "--gpu", "a100-40", *arguments)
    assert (ran.code, ran.out, profiles.calls) == (2, "", [])
    assert ran.err.startswith(message)


@pytest.mark.parametrize(
    ("error", "code"), [(TargetError("build_model raised", traceback="File m.py"), 3), (VramdocError("no torch"), 2)]
)
def test_error_never_looks_like_over_budget(
    profiles: Profiles, vramdoc: Run, project: Path, error: VramdocError, code: int
) -> None:
    """One check fails to run and the other is over its budget: both are told, and the exit code is the error's."""
    (project / "pyproject.toml").write_text(TWO)
    profiles.errors["models/large.py"] = error
    for exit_zero in ((), ("--exit-zero",)):
        ran = vramdoc("check", *exit_zero)
        assert ran.code == code
        assert ran.err.startswith(f"error: large: {error.message}\n")
        assert "✗ small" in ran.out
        assert ran.out.endswith("1 of 2 checks failed, 1 could not be made\n")


def test_error_of_the_only_check(profiles: Profiles, vramdoc: Run) -> None:
    """As ``vramdoc profile`` tells it, and once."""
    profiles.errors["model.py"] = TargetError("build_model raised", hint="fix it", traceback="File m.py, line 3")
    ran = vramdoc("check", "model.py", "--budget", "1GiB", "--gpu", "t4")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "error: build_model raised\n  File m.py, line 3\nhint: fix it\n"


def test_fault_of_ours(profiles: Profiles, vramdoc: Run, project: Path) -> None:
    """An error that nobody foresaw, in a thread too, is exit code 2."""
    (project / "pyproject.toml").write_text(TWO)
    profiles.errors["models/large.py"] = ZeroDivisionError()
    ran = vramdoc("check")
    assert (ran.code, ran.out) == (2, "")
    assert "this is an error of vramdoc itself" in ran.err


@pytest.mark.parametrize(("form", "begin"), [("junit", "<?xml"), ("sarif", "{"), ("gitlab", "["), ("json", "{")])
def test_output_file(profiles: Profiles, vramdoc: Run, project: Path, form: str, begin: str) -> None:  # noqa: ARG001
    """A build system's file beside a log that people can read; without -o the format alone is on stdout."""
    arguments = ("check", "model.py", "--gpu", "a100-40", "--budget", "8GiB", "--output-format", form)
    saved = vramdoc(*arguments, "-o", "out")
    assert (saved.code, saved.err) == (1, "wrote out\n")
    assert saved.out.startswith("✗ model.py")
    printed = vramdoc(*arguments)
    assert (printed.code, printed.err) == (1, "")
    assert printed.out == (project / "out").read_text()
    assert printed.out.startswith(begin)


def test_github_summary(
    profiles: Profiles,  # noqa: ARG001
    vramdoc: Run,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page of a run gets the Markdown by itself, below what other steps wrote."""
    (project / "summary.md").write_text("# Build\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "summary.md"))
    arguments = ("check", "model.py", "--gpu", "a100-40", "--budget", "8GiB", "--output-format", "github")
    assert vramdoc(*arguments).out.startswith("::error file=")
    assert (project / "summary.md").read_text().startswith("# Build\n## ✗ GPU memory: 1 check failed\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "none/summary.md"))
    ran = vramdoc(*arguments)
    assert ran.code == 1
    assert ran.err.startswith("warning: cannot write the job's summary to ")


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_annotations_start_at_the_repository(
    profiles: Profiles,  # noqa: ARG001
    vramdoc: Run,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    """A job may work in a folder of the repository; build systems know files from its top."""
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(project.parent))
    arguments = ("check", "model.py", "--gpu", "a100-40", "--budget", "8GiB", "--output-format")
    assert vramdoc(*arguments, "github").out.startswith(f"::error file={project.name}/")
    (issue,) = json.loads(vramdoc(*arguments, "gitlab").out)
    assert issue["location"]["path"].startswith(f"{project.name}/")
    assert json.loads(vramdoc(*arguments, "json").out)["checks"][0]["target"] == "model.py"


def test_report_needs_no_torch(report: str, project: Path) -> None:
    """Reading a report imports neither torch nor what draws nothing, and runs no worker."""
    code = (
        "import sys; from vramdoc.cli import main; code = main(sys.argv[1:]);"
        "heavy = {name.partition('.')[0] for name in sys.modules} & {'torch', 'numpy', 'pynvml', 'vramdoc.worker'};"
        "assert not heavy, heavy; sys.exit(code)"
    )
    arguments = ("check", report, "--budget", "8GiB", "--output-format", "json")
    done = start(*arguments, python=["-c", code], cwd=project)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["checks"][0]["target"] == "sample_models/gpt2.py"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gpu", "h100"), "is of NVIDIA A100-SXM4-40GB, which --gpu cannot change"),
        (("--batch-size", "16"), "is of batch 8, which --batch-size cannot change"),
        (("--steps", "9"), "is of 3 steps, which --steps cannot change"),
    ],
)
def test_report_is_what_it_is(vramdoc: Run, report: str, arguments: tuple[str, ...], message: str) -> None:
    """A flag that a report cannot follow must not be ignored."""
    ran = vramdoc("check", report, "--budget", "22GiB", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert vramdoc("check", report, "--budget", "22GiB", "--gpu", "a100-40", "--batch-size", "8").code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema_version": 0}', "report.json has schema version 0; this vramdoc reads version 1\nhint: profile"),
        ('{"schema_version": 99}', "report.json has schema version 99; this vramdoc reads version 1\nhint: upgrade"),
        ("{", "report.json is not JSON"),
        ("[]", "report.json is not a vramdoc report"),
    ],
)
def test_reports_that_cannot_be_read(vramdoc: Run, project: Path, text: str, message: str) -> None:
    """One clear line, and never exit code 1."""
    (project / "report.json").write_text(text)
    ran = vramdoc("check", "report.json", "--budget", "22GiB")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert vramdoc("check", "none.json", "--budget", "22GiB").err.startswith("error: no such file: none.json\nhint: ")


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends several profiles at once, with one line, exit code 130 and no process left."""
    budget = "[[tool.vramdoc.budget]]\nname = '{0}'\ntarget = '{0}.py'\nlimit = '1GiB'\ngpu = 'a100-40'\n"
    (tmp_path / "pyproject.toml").write_text(budget.format("a") + budget.format("b"))
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(ENDLESS)
    process = subprocess.Popen(
        [sys.executable, "-m", "vramdoc", "check", "--jobs", "2"],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for _ in range(2):
        while "looping" not in process.stderr.readline():
            assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    assert "Traceback" not in process.stderr.read()
    deadline = time.monotonic() + 10
    while workers(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers(tmp_path) == []

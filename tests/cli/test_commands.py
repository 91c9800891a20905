"""The application itself, and ``gpus``, ``env`` and ``exec``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.conftest import Ran
from vramdoc import __version__, nullgpu
from vramdoc.errors import InstallError
from vramdoc.hardware import all_gpus
from vramdoc.runner import environment as facts

Run = Callable[..., Ran]
ROOT = Path(__file__).resolve().parents[2]
CUDA_BUILD = SimpleNamespace(version="2.14.1+cu130", cuda="13.0", cudnn="9.20.0", nccl="2.28.9")
CPU_BUILD = SimpleNamespace(version="2.14.1+cpu", cuda=None, cudnn=None, nccl=None)


def start(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs ``python -m vramdoc`` in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    command = [sys.executable, *options.pop("python", ["-m", "vramdoc"]), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, timeout=60, **{"text": True, **options})


def test_no_arguments_show_the_help(vramdoc: Run) -> None:
    """A first look is no mistake."""
    ran = vramdoc()
    assert ran.code == 0
    assert "Usage: vramdoc" in ran.out
    assert ran.err == ""


@pytest.mark.parametrize("command", ["profile", "check", "diff", "gpus", "env", "exec"])
def test_help_ends_with_an_example_and_the_next_command(vramdoc: Run, command: str) -> None:
    """The end of a help text is what is read and copied."""
    ran = vramdoc(command, "--help")
    assert ran.code == 0
    example, following = ran.out.rstrip().splitlines()[-2:]
    assert example.strip().startswith(f"Example: vramdoc {command}")
    assert following.strip().startswith("Next:    vramdoc ")


def test_version(vramdoc: Run) -> None:
    """For bug reports."""
    assert vramdoc("--version").out == f"vramdoc {__version__}\n"


def test_unknown_command(vramdoc: Run) -> None:
    """The nearest one is named."""
    ran = vramdoc("profil")
    assert ran.code == 2
    assert ran.err.startswith("error: no such command 'profil'. Did you mean 'profile'?\nhint: vramdoc --help")


def test_gpus(vramdoc: Run) -> None:
    """The table, and every figure as JSON."""
    assert "a100-40" in vramdoc("gpus").out
    listed = json.loads(vramdoc("gpus", "--json").out)
    assert [gpu["short_name"] for gpu in listed] == [gpu.short_name for gpu in all_gpus()]
    assert listed[0]["total_bytes"] == all_gpus()[0].total_bytes
    assert listed[0]["sources"]


@pytest.mark.parametrize(
    ("build", "problem", "advice"),
    [
        (CUDA_BUILD, None, None),
        (CUDA_BUILD, InstallError("the null GPU is not built", hint="pip install ."), "pip install ."),
        (CPU_BUILD, InstallError("torch is a CPU build"), "the CUDA build needs no GPU"),
        (None, InstallError("torch is not installed"), "The CUDA build is needed; it needs no GPU."),
    ],
    ids=["ready", "not built", "CPU build", "no torch"],
)
def test_env(
    vramdoc: Run,
    monkeypatch: pytest.MonkeyPatch,
    build: SimpleNamespace | None,
    problem: InstallError | None,
    advice: str | None,
) -> None:
    """Each way in which a machine can be unready has its own remedy; what is missing is no failure of ``env``."""

    def environment(*_: Any, **__: Any) -> dict[str, str]:
        if problem is not None:
            raise problem
        return {}

    monkeypatch.setattr(nullgpu, "torch_build", lambda: build)
    monkeypatch.setattr(nullgpu, "environment", environment)
    monkeypatch.setattr(facts, "_real_gpus", lambda: (None, ()))
    ran = vramdoc("env")
    assert ran.code == 0
    if advice is None:
        assert "covers this torch" in ran.out
        assert "To do" not in ran.out
    else:
        assert advice in " ".join(ran.out.split())
    found = json.loads(vramdoc("env", "--json").out)
    assert found["null_gpu"]["ready"] is (problem is None)
    assert (found["torch"] or {}).get("cuda") == (build.cuda if build else None)


def test_env_without_a_driver() -> None:
    """Real look at this machine, whatever it is: it answers, and imports no torch."""
    code = (
        "import sys; from vramdoc.cli import main; code = main(['env', '--json']);"
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    done = start(python=["-c", code])
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {"vramdoc", "python", "torch", "driver", "gpus", "null_gpu", "advice"}


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """``nullgpu.environment`` that records what it is asked for and only marks the environment."""
    asked: list[Any] = []

    def environment(devices: Any, **_: Any) -> dict[str, str]:
        asked.append(devices)
        return {**os.environ, "ON_NULL_GPU": "1"}

    monkeypatch.setattr(nullgpu, "environment", environment)
    return asked


def test_exec_becomes_the_program(vramdoc: Run, no_engine: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The program replaces this process, its own flags untouched, on as many devices as were asked for."""
    started: list[Any] = []
    monkeypatch.setattr(os, "execvpe", lambda *arguments: started.append(arguments))
    ran = vramdoc("exec", "--gpu", "h100", "--count", "4", "--", "python", "train.py", "--gpu", "9", "--help")
    assert ran.code == 0
    ((file, arguments, environment),) = started
    assert (file, arguments) == ("python", ["python", "train.py", "--gpu", "9", "--help"])
    assert environment["ON_NULL_GPU"] == "1"
    assert [device.name for device in no_engine[0]] == ["NVIDIA H100 80GB HBM3"] * 4


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--gpu", "h100"], 2, "error: no command to run\nhint: vramdoc exec --gpu h100 -- python train.py"),
        (["--", "true"], 2, "error: no GPU was named\nhint: "),
        (["--gpu", "h1000", "--", "true"], 2, "error: no GPU called 'h1000'"),
        (["--gpu", "h100", "--count", "0", "--", "true"], 2, "error: count must be at least 1, not 0"),
        (["--gpu", "h100", "--", "no-such-program"], 127, "error: command not found: no-such-program"),
        (["--gpu", "h100", "--", "/etc/passwd"], 126, "error: cannot run /etc/passwd: Permission denied"),
    ],
)
def test_exec_failures(
    vramdoc: Run,
    no_engine: list[Any],  # noqa: ARG001
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    """Shell's own exit codes where the program cannot start."""
    ran = vramdoc("exec", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(message)


def test_start_up_loads_nothing_heavy() -> None:
    """--help must answer at once: no torch, and rich only where something is drawn."""
    code = (
        "import sys; from vramdoc.cli import main; main(['--help']);"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'torch', 'numpy', 'rich', 'pynvml'}))"
    )
    done = start(python=["-c", code])
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_closed_pipe_is_quiet() -> None:
    """``vramdoc gpus --json | head -1``: the reader has what it wants."""
    command = f"{sys.executable} -m vramdoc gpus --json | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] in ("141", "0")  # 0: all was written before head went away


@pytest.mark.parametrize(("encoding", "expected"), [("ascii", True), ("latin-1", True), ("utf-8", False)])
def test_view_keeps_to_the_terminals_encoding(encoding: str, expected: bool) -> None:
    """A terminal without UTF-8 gets ASCII, not a UnicodeEncodeError."""
    done = start("env", env={"PYTHONIOENCODING": encoding, "LC_ALL": "C.UTF-8"}, encoding=encoding)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii() is expected

"""The files that other tools read: the GitHub Action, whose scripts are run here, and the pre-commit hook."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from vramdoc.cli import main

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / ".github/actions/check/action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
INSTALL, CHECK = STEPS[1:]
EXPRESSION = re.compile(r"\$\{\{\s*inputs\.([a-z-]+)\s*\}\}")


def run_script(step: dict[str, Any], inputs: dict[str, str], folder: Path) -> list[list[str]]:
    """Runs a step as GitHub does, with a python that only writes down its arguments; returns those of each call."""
    stub = folder / "python"
    log = folder / "calls"
    stub.write_text(
        f"#!{sys.executable}\nimport json, sys\nopen({str(log)!r}, 'a').write(json.dumps(sys.argv[1:]) + '\\n')\n"
    )
    stub.chmod(0o755)
    values = {name: described["default"] for name, described in ACTION["inputs"].items()} | inputs
    given = {name: EXPRESSION.sub(lambda match: values[match[1]], text) for name, text in step["env"].items()}
    environment = {
        **given,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "GITHUB_ACTION_PATH": "/action/.github/actions/check",
    }
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], env=environment, cwd=folder, check=True
    )
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_action_is_what_github_takes() -> None:
    """GitHub refuses an action without these keys when it is first used, in somebody else's repository."""
    assert {"name", "description", "inputs", "runs"} == ACTION.keys()
    assert ACTION["runs"]["using"] == "composite"
    assert all({"description", "default"} == described.keys() for described in ACTION["inputs"].values())
    assert all("uses" in step or {"run", "shell"} <= step.keys() for step in STEPS)


def test_every_input_is_used_and_none_within_a_script() -> None:
    """An input without effect misleads, and one written into a script runs whatever it contains."""
    used = {name for step in STEPS for name in EXPRESSION.findall(json.dumps(step))}
    assert used == ACTION["inputs"].keys()
    assert not any("${{" in step.get("run", "") for step in STEPS)


def test_check_step_passes_what_was_given(tmp_path: Path) -> None:
    """Each input reaches its option as one argument, whatever it contains; empty ones leave the option out."""
    assert run_script(CHECK, {}, tmp_path) == [["-m", "vramdoc", "check", "--output-format=github"]]
    (tmp_path / "calls").unlink()
    inputs = {
        "target": "--help $(touch hacked)",
        "gpu": "a100-40",
        "budget": "80%",
        "metric": "device",
        "batch-size": "4",
        "baseline": "memory base.json",
        "fail-on-increase": "peak:3%\nmodule:blocks.*.mlp:0\n",
        "output-format": "sarif",
        "output-file": '"; touch hacked; echo "',
    }
    (call,) = run_script(CHECK, inputs, tmp_path)
    assert call == [
        "-m",
        "vramdoc",
        "check",
        "--gpu=a100-40",
        "--budget=80%",
        "--metric=device",
        "--batch-size=4",
        "--baseline=memory base.json",
        "--output-format=sarif",
        '--output="; touch hacked; echo "',
        "--fail-on-increase=peak:3%",
        "--fail-on-increase=module:blocks.*.mlp:0",
        "--",
        "--help $(touch hacked)",
    ]
    assert not (tmp_path / "hacked").exists()


def test_check_step_uses_options_that_exist(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option that the command has lost would only fail in other people's builds."""
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["check", "--help"]) == 0
    listed = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert set(re.findall(r"option (--[a-z-]+)", CHECK["run"])) <= listed


@pytest.mark.parametrize("wanted", [[], ["torch==2.14.1", "transformers >= 4; python_version > '3'"]])
def test_install_step(tmp_path: Path, wanted: list[str]) -> None:
    """Requirements are one a line, with whatever spaces pip allows in them; none at all is the usual case."""
    calls = run_script(INSTALL, {"requirements": "\n\n  \n".join([*wanted, ""])}, tmp_path)
    assert calls == [
        ["-m", "pip", "install", "--quiet", "--no-deps", "/action/.github/actions/check/../../.."],
        ["-m", "vramdoc.integrations.light", "--", *wanted],
    ]


def test_pre_commit_hook() -> None:
    """pre-commit needs these keys, and runs the hook as a command without file names."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "language", "entry"} <= hook.keys()
    assert (hook["id"], hook["entry"], hook["pass_filenames"]) == ("vramdoc-check", "vramdoc check", False)

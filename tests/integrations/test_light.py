"""The light install, with packages and a pip of our own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vramdoc.integrations import light

PACKAGES = {
    "vramdoc": ["torch>=2", "Nvidia_ML.py>=12", 'pytest; extra == "test"'],
    "torch": [
        'nvidia-cudnn-cu13==9; platform_system == "Linux"',
        "cuda-toolkit[cublas]==13.0.3",
        "triton~=3.8",
        "sympy[fast]>=1.13",
    ],
    "sympy": ["mpmath<1.4", 'gmpy2; extra == "fast"', "torch"],
    "peft": ["torch>=1.13", 'windows-only; sys_platform == "win32"'],
}


class Pip:
    """Puts the metadata of what it is asked for into a folder on ``sys.path``, and writes down each call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[list[str]] = []
        self.install("vramdoc")

    def install(self, name: str) -> None:
        info = self.folder / f"{name}-1.0.dist-info"
        info.mkdir(exist_ok=True)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
        lines += [f"Requires-Dist: {requirement}" for requirement in PACKAGES.get(name, [])]
        (info / "METADATA").write_text("\n".join(lines) + "\n")

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        requirements = command[command.index("--no-deps") + 1 :]
        assert command[:4] == [sys.executable, "-m", "pip", "install"]
        self.calls.append(requirements)
        if "missing" in command:
            return subprocess.CompletedProcess(command, 1)
        for requirement in requirements:
            if "win32" not in requirement:
                self.install(light.parse(requirement)[0])
        return subprocess.CompletedProcess(command, 0)


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pip:
    """In place of pip."""
    monkeypatch.syspath_prepend(tmp_path)
    stand_in = Pip(tmp_path)
    monkeypatch.setattr(subprocess, "run", stand_in.run)
    return stand_in


def test_brings_everything_but_nvidia(pip: Pip, capsys: pytest.CaptureFixture[str]) -> None:
    """To the end of the chain, NVML's Python module and asked-for extras included, with all bounds in each round."""
    assert light.main(["peft"]) == 0
    assert pip.calls == [
        ["peft", "torch>=2", "Nvidia_ML.py>=12"],
        [
            *pip.calls[0],
            "torch>=1.13",
            'windows-only; sys_platform == "win32"',
            "sympy[fast]>=1.13",
        ],
        [*pip.calls[1], "mpmath<1.4", "gmpy2", "torch"],
    ]
    assert capsys.readouterr().out == "left out: cuda-toolkit, nvidia-cudnn-cu13, triton\n"


def test_triton_on_request(pip: Pip) -> None:
    """torch.compile needs it, in the version that torch says; who does not compile saves its size."""
    light.main(["triton"])
    assert {"triton", "triton~=3.8"} <= set(pip.calls[-1])


def test_failure_of_pip(pip: Pip) -> None:
    """pip has said why: its status is ours, and nothing more is tried."""
    assert light.main(["missing"]) == 1
    assert len(pip.calls) == 1


@pytest.mark.usefixtures("pip")
def test_not_a_requirement() -> None:
    """A requirement without a name cannot be followed."""
    with pytest.raises(SystemExit, match="not a requirement with a name"):
        light.main(["==3"])

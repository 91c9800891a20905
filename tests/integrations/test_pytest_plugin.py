"""The pytest plugin, in runs of suites as users write them: two runs that start torch, the rest without."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from vramdoc.hardware import context_or_estimate, find

ROOT = Path(__file__).resolve().parents[2]
SUITE = Path(__file__).parent / "suite"
MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run of pytest."""

    status: int
    output: str
    outcomes: dict[str, set[str]]  # name of the test -> what the summary says of it
    figures: dict[str, dict[str, Any]]  # name of the test -> its entry of --vram-json
    folder: Path

    def section(self, test: str) -> str:
        """What the run printed about one failure."""
        match = re.search(
            rf"^_+ (?:ERROR at setup of )?{re.escape(test)} _+$(.*?)^(?:_{{3}}|={{3}})", self.output, re.M | re.S
        )
        assert match, f"nothing about {test} in:\n{self.output}"
        return match[1]


def run_pytest(folder: Path, *arguments: str) -> Ran:
    """Runs pytest in ``folder``, with the plugin and nothing of our own configuration."""
    installed = "vramdoc" in entry_points(group="pytest11").names
    plugin = [] if installed else ["-p", "vramdoc.integrations.pytest_plugin"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, "-rA", "--color=no", "--rootdir=.", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    output = done.stdout + done.stderr
    outcomes: dict[str, set[str]] = {}
    for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR|XFAIL) \S+?\.py::(\S+)", output, re.M):
        outcomes.setdefault(name, set()).add(outcome)
    written = folder / "figures.json"
    tests = json.loads(written.read_text())["tests"] if written.is_file() else []
    figures = {test["test"].partition("::")[2]: test for test in tests}
    return Ran(status=done.returncode, output=output, outcomes=outcomes, figures=figures, folder=folder)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The suite under two xdist workers, with coverage and a junit file."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "net.py").write_text((SUITE / "net.py").read_text())
    (folder / "test_limits.py").write_text((SUITE / "limits.py").read_text())
    return run_pytest(
        folder, "-n2", "--dist=loadfile", "--cov=net", "--cov-branch", "--cov-report=json", "--junitxml=junit.xml",
        "--vram-json=figures.json",
    )  # fmt: skip


def test_outcomes(ran: Ran) -> None:
    """Each kind of test ends as its author would expect, and one that dies takes no other with it."""
    assert ran.outcomes == {
        "test_exactly_at_the_limit": {"PASSED"},
        "test_one_block_over": {"FAILED"},
        "test_planted_scores": {"FAILED"},
        "test_steps[False]": {"PASSED"},
        "test_steps[True]": {"FAILED"},
        "test_too_few_steps": {"FAILED"},
        "test_on_the_host": {"PASSED"},
        "test_figures": {"PASSED"},
        "test_steps_without_an_optimizer": {"PASSED"},
        "TestOfOneClass::test_reads_values": {"PASSED"},
        "TestOfOneClass::test_context_counts": {"FAILED"},
        "TestOfOneClass::test_does_not_fit": {"FAILED"},
        "TestOfOneClass::test_expected_to_fail": {"XFAIL"},
        "test_dies": {"ERROR"},
        "test_elsewhere": {"PASSED"},
    }, ran.output
    assert "1 skipped" in ran.output
    assert "died of SIGABRT" in ran.section("test_dies")


def test_peak_is_that_of_the_call(ran: Ran) -> None:
    """Exact: what a fixture holds counts, what it has freed does not, and a reset by the test hides nothing."""
    assert ran.figures["test_exactly_at_the_limit"]["peak_allocated_bytes"] == 12 * MIB
    assert ran.figures["test_one_block_over"]["peak_allocated_bytes"] == 12 * MIB + 512


def test_failure_says_what_broke_by_how_much_and_where(ran: Ran) -> None:
    """The failure must lead to the line: over by a block, and the planted float32 product by name."""
    over = ran.section("test_one_block_over")
    assert "limit_vram: peaks at 12.0 MiB, which is 512 B over the limit of 12.0 MiB (allocated, a100-40)" in over
    assert "said in the test" in over
    assert "held is torn down" in over
    planted = ran.section("test_planted_scores")
    # Before the model runs there are its parameters and the batch: 2 and 4 MiB.
    assert re.search(r"at the peak +backward \(peaks: build 6\.0 MiB, forward .*, backward .*, optimizer ", planted)
    assert re.search(r"by category .*\binputs 4\.0 MiB, .*\bparameters 2\.0 MiB", planted)
    assert re.search(r"by module .* (up|down)  Linear\n", planted)
    assert re.search(r"\d+\.\d MiB +net\.py:\d+ +scores = hidden\.float\(\) \* hidden +# PLANTED", planted)


def test_growth(ran: Ran) -> None:
    """A kept loss is one block a step, told with its line; without it nothing grows; too few steps prove nothing."""
    assert ran.figures["test_steps[False]"]["growth_bytes"] == 0
    assert ran.figures["test_steps[True]"]["growth_bytes"] == 512
    leak = ran.section("test_steps[True]")
    assert "limit_growth: each step leaves 512 B behind, and 0 B is the limit (5 steps, a100-80)" in leak
    assert re.search(r"left behind .* test_limits\.py:\d+ +loss = model\(", leak)
    assert "limit_growth: needs 3 steps to tell, and saw 2" in ran.section("test_too_few_steps")


def test_other_limits(ran: Ran) -> None:
    """The context counts for the metric that says so, and memory runs out where the named GPU is full."""
    gpu = find("rtx-4090")
    figures = ran.figures["TestOfOneClass::test_context_counts"]
    assert figures["metric"] == "device"
    assert figures["gpu"] == gpu.short_name
    assert figures["context_bytes"] == context_or_estimate(gpu)[0]
    assert ran.figures["TestOfOneClass::test_reads_values"]["limit_bytes"] == round(gpu.total_bytes / 2)
    failure = ran.section("TestOfOneClass.test_does_not_fit")
    assert "Tried to allocate 30.00 GiB" in failure
    assert "recording.py" not in failure


def test_tools_of_the_suite(ran: Ran) -> None:
    """Coverage counts what the forks run, junit files carry the figures, warnings arrive."""
    measured = json.loads((ran.folder / "coverage.json").read_text())["files"]["net.py"]
    text = (ran.folder / "net.py").read_text().splitlines()
    assert [text[line - 1].strip() for line in measured["missing_lines"]] == ['print("this line is not covered")']
    case = next(
        case
        for case in ElementTree.parse(ran.folder / "junit.xml").iter("testcase")
        if case.get("name") == "test_exactly_at_the_limit"
    )
    properties = {item.get("name"): item.get("value") for item in case.iter("property")}
    assert properties["vram_peak_allocated_bytes"] == str(12 * MIB)
    assert "UserWarning: from the test" in ran.output
    assert ran.output.count("PytestWarning: limit_vram says nothing: the test took no GPU memory") == 1


def test_ini_file(tmp_path: Path) -> None:
    """The ini twins hold for a whole suite without a mark in it, and an option wins over them."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nvram_all = true\nvram_limit = 1MiB\nvram_gpu = l4\n")
    (tmp_path / "test_it.py").write_text(
        "import torch\n"
        # A GPU that is used at import cannot be forked: each run takes a process of its own.
        "NAME = torch.cuda.get_device_name() if torch.cuda.is_available() else 'no GPU'\n"
        "def test_it():\n"
        "    assert NAME == torch.cuda.get_device_name() == 'NVIDIA L4'\n"
        "    torch.zeros(2**20, device='cuda')\n"
    )
    ran = run_pytest(tmp_path, "--vram-limit=3MiB", "--vram-json=figures.json")
    assert ran.outcomes == {"test_it": {"FAILED"}}, ran.output
    assert re.search(r"by line +4\.0 MiB +test_it\.py:5 ", ran.output)
    assert "peaks at 4.0 MiB, which is 1.0 MiB over the limit of 3.0 MiB (allocated, l4)" in ran.output
    assert ran.figures["test_it"]["peak_allocated_bytes"] == 4 * MIB


@pytest.mark.parametrize(
    ("mark", "arguments", "message"),
    [
        ('limit_vram("8 elephants")', [], "test_it.py::test_it: limit_vram: limit '8 elephants' is neither a size"),
        ("limit_vram", [], "test_it.py::test_it: limit_vram says no limit"),
        ('limit_vram("8GiB", gpus="l4")', [], "test_it.py::test_it: limit_vram has no argument 'gpus'"),
        ("limit_vram(8)", [], "test_it.py::test_it: limit_vram takes one limit, and all arguments as text"),
        ('limit_vram("8GiB", gpu="a100-41")', [], "no GPU called 'a100-41' in the tables (did you mean a100-40"),
        ('limit_vram("8GiB", metric="used")', [], "metric 'used' is not one of allocated, reserved, device"),
        ('limit_growth("nothing")', [], "not a size: 'nothing'"),
        ("slow", ["--vram-gpu=gpu"], "no GPU called 'gpu' in the tables"),
        ("slow", ["--vram-limit=150%"], "--vram-limit '150%' is more than the whole GPU"),
    ],
)
def test_nonsense_is_a_usage_error(tmp_path: Path, mark: str, arguments: list[str], message: str) -> None:
    """What makes no sense ends the run while it collects, by one line that names the test or the option."""
    (tmp_path / "test_it.py").write_text(f"import pytest\n@pytest.mark.{mark}\ndef test_it(): ...\n")
    ran = run_pytest(tmp_path, *arguments)
    assert ran.status == pytest.ExitCode.USAGE_ERROR
    assert message in ran.output
    assert "Traceback" not in ran.output


def test_nonsense_under_xdist(tmp_path: Path) -> None:
    """A worker that ended while it collects would take the run down with an internal error."""
    (tmp_path / "test_it.py").write_text("import pytest\n@pytest.mark.limit_vram\ndef test_it(): ...\n")
    ran = run_pytest(tmp_path, "-n1")
    assert ran.outcomes == {"test_it": {"ERROR"}}
    assert "limit_vram says no limit" in ran.output


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("__version__ = '2.14.1+cpu'\ncuda = None", "torch 2.14.1+cpu is a build without CUDA"),
        (
            "__version__ = '2.0'\ncuda = '11.8'",
            "torch 2.0 was built with CUDA 11.8; the null GPU covers CUDA 12 and 13",
        ),
    ],
)
def test_without_a_fitting_torch(tmp_path: Path, version: str, message: str) -> None:
    """The test does not fail for what it holds: it is an error that says what is missing."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    (tmp_path / "torch" / "version.py").write_text(version)
    (tmp_path / "test_it.py").write_text('import pytest\n@pytest.mark.limit_vram("1GiB")\ndef test_it(): ...\n')
    ran = run_pytest(tmp_path)
    assert ran.outcomes == {"test_it": {"ERROR"}}
    assert message in ran.output
    assert "Traceback" not in ran.output


def test_costs_nothing_where_unused() -> None:
    """Every pytest run in the environment imports the plugin: it must bring nothing of vramdoc's along."""
    code = "import pytest, sys; before = set(sys.modules); import vramdoc.integrations.pytest_plugin; "
    code += "print(*sorted(set(sys.modules) - before))"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["vramdoc", "vramdoc.integrations", "vramdoc.integrations.pytest_plugin"]

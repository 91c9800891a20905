"""What goes wrong gives one clear message, the right exit code, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODEL = "import torch\nfrom torch import nn\ndef build_model(): return nn.Linear(10, 10)\n"
BATCH = "def make_batch(n): return torch.zeros(n, 10)\n"
ENDLESS = "import torch\nprint('looping', flush=True)\nwhile True: pass\n"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "vramdoc", "profile", *arguments]


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", **changes}


def profile(folder: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("model.py", "--gpu", "a100-40", *arguments),
        cwd=folder,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=120,
    )


def workers(folder: Path) -> list[str]:
    """Command lines of processes that work in ``folder``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                found.append((process / "cmdline").read_text())
        except OSError:
            continue  # it has just ended, or is not ours to ask
    return found


@pytest.mark.parametrize(
    ("source", "message", "detail"),
    [
        ("def build_model(:\n", "loading model.py failed: SyntaxError", "model.py, line 1"),
        ("import not_there\n", "No module named 'not_there'", "hint: install not_there"),
        ("x = 1\n", "model.py has no model", "hint: define `def build_model()"),
        (MODEL, "model.py has no make_batch", "hint: define `def make_batch"),
        ("def build_model(): raise ValueError('no weights')\ndef make_batch(n): ...\n", "no weights", "in build_model"),
        (f"{MODEL}def make_batch(n): return torch.zeros(n, 7)\n", "compute_loss() failed", "(1x7 and 10x10)"),
        (f"import sys\n{MODEL}{BATCH}sys.exit(5)\n", "called sys.exit(5)", "hint: put what a script runs below"),
        (f"{MODEL}{BATCH}import os\nos._exit(3)\n", "ended by itself with status 3", "hint:"),
        (f"{MODEL}{BATCH}def compute_loss(m, b): return m(b)\n", "a tensor of shape (1, 10)", "hint: reduce it"),
        ("\0\0\0", "null bytes", "SyntaxError"),
    ],
)
def test_user_code_that_fails(tmp_path: Path, source: str, message: str, detail: str) -> None:
    """The user's code is at fault: exit code 3, their own traceback, none of ours."""
    (tmp_path / "model.py").write_text(source)
    done = profile(tmp_path)
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert detail in done.stderr
    assert "vramdoc/" not in done.stderr
    assert workers(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--batch-size", "0"), "batch size"),
        (("--gpu", "a1000-40"), "a100-40"),
        (("--gpu", "gtx1080ti"), "was built for"),
        (("-o", "missing/report.json"), "missing"),
        (("-o", "report.xyz"), ".xyz"),
        (("--assume", "routing=wild"), "routing"),
    ],
)
def test_wrong_words(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """A usage error is found before the long work: exit code 2 and one message."""
    (tmp_path / "model.py").write_text(ENDLESS)
    done = profile(tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert "looping" not in done.stderr


def test_endless_loop(tmp_path: Path) -> None:
    """--timeout ends it, with the line that was running."""
    (tmp_path / "model.py").write_text(ENDLESS)
    done = profile(tmp_path, "--timeout", "1")
    assert done.returncode == 3
    assert "did not end in time" in done.stderr
    assert "while True: pass" in done.stderr
    assert workers(tmp_path) == []


def test_megabytes_printed(tmp_path: Path) -> None:
    """What user code prints goes to stderr, however much: stdout holds the report alone."""
    (tmp_path / "model.py").write_text(f"{MODEL}{BATCH}for _ in range(100_000): print('x' * 50)\n")
    done = profile(tmp_path, "--json")
    assert done.returncode == 0
    assert len(done.stderr) > 5_000_000
    assert done.stdout.startswith("{")
    assert "xxx" not in done.stdout


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends every process, with one line and exit code 130."""
    (tmp_path / "model.py").write_text(ENDLESS)
    process = subprocess.Popen(
        command("model.py", "--gpu", "a100-40"),
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "looping" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    rest = process.stderr.read()
    assert "Traceback" not in rest
    assert workers(tmp_path) == []


def test_killed_worker(tmp_path: Path) -> None:
    """A worker that the system kills is a finding about the machine, not a traceback."""
    (tmp_path / "model.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    done = profile(tmp_path)
    assert done.returncode == 2
    assert "was killed" in done.stderr
    assert "memory" in done.stderr


def test_killed_parent(tmp_path: Path) -> None:
    """When the command itself is killed, its workers end too."""
    (tmp_path / "model.py").write_text(ENDLESS)
    process = subprocess.Popen(
        command("model.py", "--gpu", "a100-40"), cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    while "looping" not in process.stderr.readline():
        assert process.poll() is None
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while workers(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers(tmp_path) == []


def site_without_torch(tmp_path: Path) -> Path:
    """A folder that has every installed package but torch."""
    folder = tmp_path / "site"
    folder.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(("torch", "nvidia", "vramdoc", "__editable__")):
            (folder / entry.name).symlink_to(entry)
    return folder


def run_in_site(tmp_path: Path, site: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "model.py").write_text(MODEL + BATCH)
    # -S: without the environment's own site-packages.
    return subprocess.run(
        [sys.executable, "-S", "-m", "vramdoc", "profile", "model.py", "--gpu", "a100-40"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=os.pathsep.join([str(ROOT), str(site)])),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_no_torch(tmp_path: Path) -> None:
    """Without torch the message says what to install."""
    done = run_in_site(tmp_path, site_without_torch(tmp_path))
    assert done.returncode == 2
    assert "torch is not installed" in done.stderr
    assert "pip install torch" in done.stderr


def test_cpu_build_of_torch(tmp_path: Path) -> None:
    """A CPU build is told apart, and the message says that the CUDA build needs no GPU."""
    site = site_without_torch(tmp_path)
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text("raise ImportError('must not be imported')\n")
    (site / "torch" / "version.py").write_text("__version__ = '2.14.1+cpu'\ncuda = None\n")
    (site / "torch-2.14.1+cpu.dist-info").mkdir()
    (site / "torch-2.14.1+cpu.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.14.1+cpu\n")
    done = run_in_site(tmp_path, site)
    assert done.returncode == 2
    assert "without CUDA" in done.stderr
    assert "needs no GPU" in done.stderr

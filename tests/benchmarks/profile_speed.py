"""How fast and how light a profile is: ``python tests/benchmarks/profile_speed.py [--json FILE]``.

Prints, from one run on this machine:

- wall time and peak host memory of ``vramdoc profile`` for two sample models, beside those of the bare program
  (import torch, build, as many steps, on the same null GPU);
- one attributed step beside one step under torch's MemTracker in FakeTensorMode, on the same model.

Both programs skip large random initialisers, so that the ratios say what the profile costs and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = Path(__file__).resolve().parent / "parts.py"
GPU = "h200"
SAMPLES = ("gpt2", "llama3_8b")
TRACKED = "gpt2"
STEPS = 3
POLL_SECONDS = 0.02
MB = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a command took, the processes that it started included."""

    seconds: float
    cpu_seconds: float  # of the command and all that it waited for; the steadier figure on a busy machine
    peak_bytes: int  # highest sum of resident sizes; a page that two processes share counts twice


def resident_bytes(root: int) -> int:
    """Resident bytes of the process ``root`` and all below it."""
    children: dict[int, list[int]] = {}
    pages: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            pages[int(entry.name)] = int((entry / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue  # it ended meanwhile
        children.setdefault(parent, []).append(int(entry.name))
    tree, found = [root], 0
    while tree:
        process = tree.pop()
        found += pages.get(process, 0)
        tree += children.get(process, [])
    return found * os.sysconf("SC_PAGE_SIZE")


def cost(command: list[str], environment: Mapping[str, str]) -> Cost:
    """Runs ``command`` and watches it. Raises CalledProcessError where it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors: list[bytes] = []
    assert process.stderr is not None
    reader = threading.Thread(target=lambda stream: errors.append(stream.read()), args=(process.stderr,))
    reader.start()
    peak = 0
    ended, status, used = os.wait4(process.pid, os.WNOHANG)
    while not ended:
        peak = max(peak, resident_bytes(process.pid))
        time.sleep(POLL_SECONDS)
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    reader.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=b"".join(errors).decode())
    return Cost(seconds=seconds, cpu_seconds=used.ru_utime + used.ru_stime, peak_bytes=peak)


def described(run: Cost) -> str:
    return f"{run.seconds:.1f} s ({run.cpu_seconds:.1f} s of processors), {run.peak_bytes / MB:,.0f} MB"


def best(command: list[str], environment: Mapping[str, str], repeats: int) -> Cost:
    """The fastest of several runs: what else the machine does only ever adds."""
    return min((cost(command, environment) for _ in range(repeats)), key=lambda run: run.seconds)


def step_seconds(part: str, sample: str, environment: Mapping[str, str]) -> dict[str, float]:
    """What a part of parts.py measured of itself, in seconds."""
    done = subprocess.run(
        [sys.executable, str(PARTS), part, str(ROOT / "sample_models" / f"{sample}.py")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, part, stderr=done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def profile_and_bare(sample: str, null: Mapping[str, str], plain: Mapping[str, str], repeats: int) -> dict[str, Cost]:
    """Cost of the profile and of the bare program."""
    target = str(ROOT / "sample_models" / f"{sample}.py")
    profile = [sys.executable, "-m", "vramdoc", "profile", target, "--gpu", GPU, "--steps", str(STEPS), "--quiet"]
    return {
        "bare": best([sys.executable, str(PARTS), "bare", target, str(STEPS)], null, repeats),
        "profile": best(profile, plain, repeats),
    }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each command, of which the fastest counts")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from vramdoc import hardware, nullgpu
    from vramdoc.runner.devices import device_specs

    plain = {**os.environ, "PYTHONPATH": str(ROOT)}
    null = nullgpu.environment(device_specs(hardware.find(GPU)), limited=False, base=plain)
    figures: dict[str, object] = {}
    for sample in SAMPLES:
        costs = profile_and_bare(sample, null, plain, arguments.repeats)
        figures[sample] = {name: asdict(each) for name, each in costs.items()}
        bare, profile = costs["bare"], costs["profile"]
        print(
            f"{sample}: profile {described(profile)}; bare {described(bare)}; "
            f"ratio {profile.seconds / bare.seconds:.2f} in time, "
            f"{profile.cpu_seconds / bare.cpu_seconds:.2f} in processor time, "
            f"{profile.peak_bytes / bare.peak_bytes:.2f} in memory",
            flush=True,
        )
    attributed = step_seconds("attributed", TRACKED, null)
    tracked = step_seconds("memtracker", TRACKED, null)
    figures["attributed"], figures["memtracker"] = attributed, tracked
    ratios = {name: tracked["step"] / seconds for name, seconds in attributed.items()}
    print(
        f"{TRACKED}: attributed step {attributed['step'] * 1e3:.0f} ms ({attributed['with_reading'] * 1e3:.0f} ms with "
        f"its share of reading the recording); MemTracker's {tracked['step'] * 1e3:.0f} ms; "
        f"ratio {ratios['step']:.1f} ({ratios['with_reading']:.1f})"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

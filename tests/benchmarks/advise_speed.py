"""How much advice can be measured in how long: ``python tests/benchmarks/advise_speed.py [--json FILE] [--case NAME]``.

Prints, from one run on this machine and without a cache, the number of measured candidates and the wall time of
``vramdoc advise`` for GPT-2 on one GPU and for Llama 3 8B on eight, and how busy the machine was beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call of advise, and what is to be reached on two idle processors."""

    sample: str
    gpu: str
    gpus: int
    allow: tuple[str, ...] | None  # None: the default
    seconds: float
    candidates: int


CASES = {
    "gpt2": Case(
        sample="gpt2", gpu="a100-40", gpus=1, allow=("speed", "numerics", "training"), seconds=60, candidates=200
    ),
    "llama3_8b": Case(sample="llama3_8b", gpu="a100-80", gpus=8, allow=None, seconds=120, candidates=1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one call took."""

    candidates: int
    seconds: float  # wall time
    processor_seconds: float  # of all workers
    load: float  # of the machine as a whole, mean of the last minute: more than its processors means it was not idle


def measured(case: Case) -> Outcome:
    """Runs the case."""
    from vramdoc import advise

    asked = advise.checked(ROOT / "sample_models" / f"{case.sample}.py", gpu=case.gpu, gpus=case.gpus, allow=case.allow)
    before, started = os.times(), time.perf_counter()
    report = advise.advise(asked, cache=None)
    after = os.times()
    used = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    return Outcome(
        candidates=report.measured,
        seconds=time.perf_counter() - started,
        processor_seconds=used,
        load=os.getloadavg()[0],
    )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--case", choices=CASES, help="only this one")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    os.environ["PYTHONPATH"] = str(ROOT)
    figures = {}
    for name, case in CASES.items():
        if arguments.case not in (None, name):
            continue
        found = measured(case)
        figures[name] = asdict(found)
        print(
            f"{name} on {case.gpus} x {case.gpu}: {found.candidates} candidates in {found.seconds:.0f} s "
            f"({found.processor_seconds:.0f} s of processors, load {found.load:.1f} on {os.cpu_count()}); "
            f"to reach on two idle ones: {case.candidates} in {case.seconds:.0f} s",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

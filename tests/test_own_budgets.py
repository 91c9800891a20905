"""This repository's own gate: what the sample models take is accepted in the open, or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_sample_models_hold_their_budgets_and_their_baseline() -> None:
    """A change of vramdoc that moves a sample's peak by a byte shows here, as a user's would in their CI."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "vramdoc", "check"),
            *("--baseline", ".github/vram-baseline.json", "--fail-on-increase", "allocated:0"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr

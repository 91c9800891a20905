"""The sample models are what their docstrings say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parent.parent / "sample_models"
UNET_PAIRS = [(3, 64), (64, 128), (128, 256), (256, 512), (512, 1024)]  # channels in and out, going down
UNET = (
    sum(9 * (inputs + outputs) * outputs + 4 * outputs for inputs, outputs in UNET_PAIRS)  # two norms each
    + sum(9 * (2 * w + w) * w + 4 * w + 2 * w * w * 4 + w for w in (64, 128, 256, 512))  # and the upsampling
    + 64 * 2
    + 2
)
PARAMETERS = {  # published for the architecture, or counted by hand where the sample is our own
    "gpt2": 124_439_808,  # Radford et al. 2019 as released, head tied to the embedding
    "llama3_8b": 8_030_261_248,  # Meta's release
    "resnet50": 25_557_032,  # torchvision's resnet50
    "vit": 86_567_656,  # torchvision's vit_b_16
    "unet": UNET,
    "lstm": 33_278 * 1024 + 33_278 + 3 * (8 * 1024 * 1024 + 8 * 1024),  # tied table, head bias, three layers
    "leaky": 1024 * 4096 + 4096 + 4096 * 4096 + 4096 + 4096 * 1000 + 1000,
    "too_big": 774_030_080,  # GPT-2 large as released
}
COUNT = """
import json, runpy, sys, torch
counts = {}
for path in sys.argv[1:]:
    sample = runpy.run_path(path)
    with torch.device("meta"):
        model = sample["build_model"]()
    batch = sample["make_batch"](1)
    counts[path] = sum(parameter.numel() for parameter in model.parameters())
    assert sample["BATCH_SIZE"] >= 1 and len(batch[0]) >= 1
    assert sample["make_optimizer"](model).param_groups and callable(sample["compute_loss"])
print(json.dumps(counts))
"""


@pytest.fixture(scope="module")
def counted() -> dict[str, int]:
    """Parameters of every sample, counted on the meta device in one process."""
    paths = sorted(str(path) for path in SAMPLES.glob("*.py"))
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *paths], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {Path(path).stem: count for path, count in json.loads(done.stdout).items()}


def test_every_sample_has_the_published_number_of_parameters(counted: dict[str, int]) -> None:
    """A sample that misses a layer would make every figure shown for it wrong."""
    assert counted == PARAMETERS


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_every_sample_says_what_it_is(name: str) -> None:
    """The samples are the first code that a user reads: a docstring, and short."""
    text = (SAMPLES / f"{name}.py").read_text()
    assert text.startswith('"""')
    assert len(text.splitlines()) <= 130

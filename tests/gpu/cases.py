"""The programs that are run on the real GPU and on the null one: a table. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One training program: a sample model with something changed."""

    name: str
    sample: str  # file in sample_models, without suffix
    batch_size: int
    constants: Mapping[str, object] = field(default_factory=dict)  # module constants of the sample to set
    changes: tuple[str, ...] = ()  # functions of program.py, applied in this order
    environment: Mapping[str, str] = field(default_factory=dict)
    exact: bool = True  # False: cuDNN picks workspaces, which only the real library knows


EXPANDABLE = {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
FP32 = {"AUTOCAST": False}
NHWC = {"CHANNELS_LAST": True}
TWO_LAYERS = {"LAYERS": 2, "VOCABULARY": 32000}  # small enough to be initialised on the host

CASES = (
    Case(name="gpt2-autocast", sample="gpt2", batch_size=8),
    Case(name="gpt2-fp32", sample="gpt2", batch_size=4, constants=FP32),
    Case(name="gpt2-checkpointing", sample="gpt2", batch_size=8, changes=("checkpoint_blocks",)),
    Case(name="gpt2-lora", sample="gpt2", batch_size=8, changes=("adapters",)),
    Case(name="gpt2-compile", sample="gpt2", batch_size=8, changes=("compiled",)),
    Case(name="gpt2-expandable", sample="gpt2", batch_size=8, environment=EXPANDABLE),
    Case(name="gpt2-fused-adamw", sample="gpt2", batch_size=8, changes=("fused_adamw",)),
    Case(name="gpt2-accumulation", sample="gpt2", batch_size=4, changes=("keep_gradients",)),
    Case(name="llama-two-layers-bf16", sample="llama3_8b", batch_size=1, constants=TWO_LAYERS),
    Case(name="vit-autocast", sample="vit", batch_size=64, exact=False),
    Case(name="vit-fp32", sample="vit", batch_size=32, constants=FP32, exact=False),
    Case(name="resnet50-fp32", sample="resnet50", batch_size=64, exact=False),
    Case(name="resnet50-autocast", sample="resnet50", batch_size=64, changes=("autocast",), exact=False),
    Case(name="resnet50-channels-last", sample="resnet50", batch_size=64, constants=NHWC, exact=False),
    Case(
        name="resnet50-channels-last-autocast",
        sample="resnet50",
        batch_size=64,
        constants=NHWC,
        changes=("autocast",),
        exact=False,
    ),
    Case(name="unet-fp32", sample="unet", batch_size=4, exact=False),
    Case(name="unet-autocast", sample="unet", batch_size=4, changes=("autocast",), exact=False),
    Case(name="lstm-fp32", sample="lstm", batch_size=64, exact=False),
    Case(name="leaky", sample="leaky", batch_size=2048),
    Case(name="out-of-memory", sample="gpt2", batch_size=8, changes=("leave_6_gib",)),
    Case(name="retries", sample="gpt2", batch_size=8, changes=("leave_11_gib", "cache_pieces")),
)
BY_NAME = {case.name: case for case in CASES}

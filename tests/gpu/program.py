"""Runs one case on whatever GPU the process has: ``python program.py CASE RESULT.json``.

The same file runs on the real GPU and on the null one. It writes what PyTorch's allocator and CUDA report;
on a case that uses cuDNN, a last step under a dispatch mode adds what each call took beside its outputs.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from cases import BY_NAME, Case  # beside this file, which runs as a program
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

SAMPLES = Path(__file__).resolve().parent.parent.parent / "sample_models"
STEPS = 3
GIB = 1024**3
CUDNN_OPERATIONS = ("convolution", "cudnn_", "_cudnn_rnn")


class Training:
    """A model with all that a step needs; the changes of a case rewrite it before the first step."""

    def __init__(self, sample: ModuleType, batch_size: int) -> None:
        self.model: nn.Module = sample.build_model().cuda()
        batch = sample.make_batch(batch_size)
        self.batch: Any = batch.cuda() if isinstance(batch, Tensor) else tuple(part.cuda() for part in batch)
        self.loss: Callable[[nn.Module, Any], Tensor] = sample.compute_loss
        self.make_optimizer: Callable[[nn.Module], torch.optim.Optimizer] = sample.make_optimizer
        self.set_to_none = True
        self.filler: Tensor | None = None  # device memory that is taken away
        self.optimizer: torch.optim.Optimizer | None = None

    def step(self) -> None:
        if self.optimizer is None:
            self.optimizer = self.make_optimizer(self.model)
        loss = self.loss(self.model, self.batch)
        loss.backward()
        del loss
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=self.set_to_none)


def checkpoint_blocks(training: Training) -> None:
    from torch.utils.checkpoint import checkpoint

    for block in training.model.blocks:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)


def adapters(training: Training) -> None:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=16, lora_alpha=16, lora_dropout=0.0, target_modules=["query_key_value"])
    training.model = get_peft_model(training.model, config)


def compiled(training: Training) -> None:
    training.model = torch.compile(training.model)


def autocast(training: Training) -> None:
    training.loss = torch.autocast("cuda", dtype=torch.bfloat16)(training.loss)


def fused_adamw(training: Training) -> None:
    training.make_optimizer = lambda model: torch.optim.AdamW(model.parameters(), fused=True)


def keep_gradients(training: Training) -> None:
    training.set_to_none = False


def leave(training: Training, room: int) -> None:
    """Takes the device's memory but ``room`` bytes, in one tensor that stays."""
    total = torch.cuda.get_device_properties(0).total_memory
    training.filler = torch.empty(total - room, dtype=torch.uint8, device="cuda")


def cache_pieces(_training: Training) -> None:
    """Leaves 3 GiB in the allocator's cache, in pieces of 12 MiB that few requests can use."""
    pieces = [torch.empty(12 * 2**20, dtype=torch.uint8, device="cuda") for _ in range(256)]
    pieces.clear()


CHANGES: Mapping[str, Callable[[Training], None]] = {
    "checkpoint_blocks": checkpoint_blocks,
    "adapters": adapters,
    "compiled": compiled,
    "autocast": autocast,
    "fused_adamw": fused_adamw,
    "keep_gradients": keep_gradients,
    "cache_pieces": cache_pieces,
    "leave_6_gib": functools.partial(leave, room=6 * GIB),
    "leave_11_gib": functools.partial(leave, room=11 * GIB),
}


class Workspaces(TorchDispatchMode):
    """What each cuDNN operation allocates at its highest moment, beside what it returns."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, dict[str, Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if not name.startswith(CUDNN_OPERATIONS):
            return func(*args, **(kwargs or {}))
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        outputs = func(*args, **(kwargs or {}))
        kept = torch.cuda.memory_allocated() - before
        extra = torch.cuda.max_memory_allocated() - before - kept
        self._note(name, args, extra)
        return outputs

    def _note(self, name: str, args: Any, extra: int) -> None:
        tensors = [part for part in args if isinstance(part, Tensor)]
        shapes = [[list(part.shape), list(part.stride()), str(part.dtype)] for part in tensors[:3]]
        rest = [part for part in args if isinstance(part, int | bool) or _is_sizes(part)]
        key = json.dumps([name, shapes, rest])
        row = {"op": name, "tensors": shapes, "arguments": rest, "bytes": extra, "calls": 0}
        self.rows.setdefault(key, row)["calls"] += 1


def _is_sizes(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(part, int | bool) for part in value)


def load_sample(case: Case) -> ModuleType:
    spec = importlib.util.spec_from_file_location(case.sample, SAMPLES / f"{case.sample}.py")
    assert spec is not None
    assert spec.loader is not None
    sample = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sample)
    for name, value in case.constants.items():
        assert hasattr(sample, name), f"{case.sample} has no {name}"
        setattr(sample, name, value)
    return sample


def run(case: Case) -> dict[str, Any]:
    """The figures of a case. Sizes in bytes; lists have one entry a step."""
    torch.manual_seed(0)
    found: dict[str, Any] = {"allocated": [], "reserved": [], "after": [], "out_of_memory": "", "workspaces": []}
    training = Training(load_sample(case), case.batch_size)
    try:
        for change in case.changes:
            CHANGES[change](training)
        for _ in range(STEPS):
            torch.cuda.reset_peak_memory_stats()
            training.step()
            found["allocated"].append(torch.cuda.max_memory_allocated())
            found["reserved"].append(torch.cuda.max_memory_reserved())
            found["after"].append(torch.cuda.memory_allocated())
    except torch.cuda.OutOfMemoryError as error:
        found["out_of_memory"] = str(error)
    found["retries"] = torch.cuda.memory_stats()["num_alloc_retries"]
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    found["context"] = total - free - torch.cuda.memory_reserved()
    if not case.exact:
        with Workspaces() as workspaces:
            training.step()
        found["workspaces"] = list(workspaces.rows.values())
    return found


def device() -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "compute_capability": [properties.major, properties.minor],
        "multiprocessors": properties.multi_processor_count,
        "total_bytes": properties.total_memory,
    }


def versions() -> dict[str, Any]:
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }


if __name__ == "__main__":
    result = {"gpu": device(), "versions": versions(), **run(BY_NAME[sys.argv[1]])}
    Path(sys.argv[2]).write_text(json.dumps(result))

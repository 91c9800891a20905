"""Records recipes on a null GPU: ``python -m tests.benchmarks.time_calibration.record RECIPES RESULT``.

Both are files; the process must run on the null GPU of the recipes. What a run gives is its rows of operations and
the bytes of its gradients.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.benchmarks.time_calibration import images, language, sound, transformer_xl  # noqa: F401 - register models
from tests.benchmarks.time_calibration.recipe import MODELS, Recipe, Workload
from vramdoc.report.operations import Operation
from vramdoc.worker.operations import OperationRecorder

_WARM_UP_STEPS = 2


def record(recipe: Recipe) -> tuple[tuple[Operation, ...], int]:
    """One step's operations after warm-up, and the bytes of all gradients."""
    torch.backends.cuda.matmul.allow_tf32 = recipe.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = recipe.precision != "fp32"
    kind, _, name = recipe.model.partition("/")
    with torch.device("cuda"), _no_initialisers():
        work = MODELS[kind](name, recipe)
        if recipe.precision in ("bf16", "fp16"):
            work.model.to(torch.bfloat16 if recipe.precision == "bf16" else torch.float16)
        work.model.train()
        if recipe.checkpoint != "none":
            _checkpoint(work.model, selective=recipe.checkpoint == "selective")
        optimizer = _optimizer(recipe, work.model)
        now = {"phase": ""}
        step = _step(recipe, work, optimizer, now)
        for _ in range(_WARM_UP_STEPS):
            step()
        with OperationRecorder(lambda: now["phase"]) as recorder:
            step()
    trained = [p for p in work.model.parameters() if p.requires_grad]
    return recorder.operations(), sum(p.nbytes for p in trained)


def _step(recipe: Recipe, work: Workload, optimizer: Any, now: dict[str, str]) -> Callable[[], None]:
    half = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}.get(recipe.precision)

    def step() -> None:
        now["phase"] = "forward"
        with torch.autocast("cuda", dtype=half) if half else nullcontext():
            loss = work.loss(work.model)
        now["phase"] = "backward"
        loss.backward()
        now["phase"] = "optimizer"
        if optimizer:
            with torch.device("cpu"):  # where optimizers count their steps
                optimizer.step()
        work.model.zero_grad()

    return step


def _optimizer(recipe: Recipe, model: nn.Module) -> Any:
    parameters = [p for p in model.parameters() if p.requires_grad]
    if recipe.optimizer == "none":
        return None
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, foreach=True)
    if recipe.optimizer == "adafactor":
        return torch.optim.Adafactor(parameters, foreach=False)
    how = recipe.optimizer.removeprefix("adam-")
    return torch.optim.AdamW(parameters, foreach=how == "foreach", fused=how == "fused")


def _checkpoint(model: nn.Module, *, selective: bool) -> None:
    """Every block of the longest list of modules, as FSDP's users do it."""
    from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

    kept = {torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_flash_attention.default}

    def policy(_context: Any, op: Any, *_: Any, **__: Any) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE

    blocks = max((m for m in model.modules() if isinstance(m, nn.ModuleList)), key=len)
    for block in blocks:
        forward = block.forward
        options: dict[str, Any] = {"use_reentrant": False}
        if selective:
            options["context_fn"] = lambda: create_selective_checkpoint_contexts(policy)
        block.forward = lambda *args, _forward=forward, _options=options, **kwargs: checkpoint(
            _forward, *args, **_options, **kwargs
        )


@contextmanager
def _no_initialisers() -> Iterator[None]:
    """Values do not matter here, and a large model's take long to draw."""
    from vramdoc.worker.initialisers import SkipInitialisers

    with SkipInitialisers():
        yield


def main(arguments: list[str]) -> int:
    """Records every recipe of a file; one that fails is told and left out."""
    recipes: list[Recipe] = pickle.loads(Path(arguments[0]).read_bytes())
    made = {}
    for recipe in recipes:
        try:
            made[recipe.key] = record(recipe)
        except Exception:  # noqa: BLE001 - one recipe's failure must not lose the others
            print(f"{recipe.key} failed", file=sys.stderr)
            traceback.print_exc()
        torch.cuda.empty_cache()
    Path(arguments[1]).write_bytes(pickle.dumps(made))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

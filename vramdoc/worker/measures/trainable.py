"""Measures that train fewer parameters."""

from __future__ import annotations

import importlib.util

from torch import nn

from vramdoc.errors import MeasureError
from vramdoc.worker.blocks import Blocks, find_blocks, path
from vramdoc.worker.measures.activations import repeated
from vramdoc.worker.measures.registry import measure
from vramdoc.worker.measures.snippet import Snippet, on_model
from vramdoc.worker.training import Training

_LINEAR = ("Linear", "Conv1D")  # Conv1D: GPT-2's linear layer in transformers


@measure("lora")
def lora(training: Training, rank: int = 8, block: str | None = None) -> None:
    """Low-rank adapters beside every linear layer of the repeated blocks; all else is frozen."""
    if importlib.util.find_spec("peft") is None:
        raise MeasureError("needs peft", hint="pip install peft")

    def make(model: nn.Module) -> Snippet:
        found = repeated(model, block)
        targets = sorted(_linear_names(found))
        if not targets:
            raise MeasureError(f"the blocks of class {found.class_name} have no linear layers")
        body = f"""
def build_model():
    config = peft.LoraConfig(r={rank}, lora_alpha={2 * rank}, target_modules={_pattern(found, targets)!r})
    return peft.get_peft_model(build_model_before_lora(), config)
"""
        return Snippet(measure="lora", body=body, wraps=("build_model",), imports=("peft",))

    on_model(training, make)


def _linear_names(found: Blocks) -> set[str]:
    return {
        f"{outer}.{name}"
        for outer, block in zip(found.names, found.modules, strict=True)
        for name, module in block.named_modules()
        if type(module).__name__ in _LINEAR
    }


def _pattern(found: Blocks, names: list[str]) -> str | list[str]:
    """What peft matches whole names with: short where the blocks differ in their number only."""
    inner = sorted({name for block in found.modules for name, module in block.named_modules()
                    if type(module).__name__ in _LINEAR})  # fmt: skip
    parents = {name.rpartition(".")[0] for name in found.names}
    if len(parents) == 1 and len(names) == len(inner) * len(found.modules):
        parent = parents.pop().replace(".", r"\.")
        prefix = rf"{parent}\." if parent else ""
        return rf"{prefix}\d+\.({'|'.join(name.replace('.', chr(92) + '.') for name in inner)})"
    return names


@measure("freeze")
def freeze(training: Training, keep: int = 1, block: str | None = None) -> None:
    """Only the last ``keep`` repeated blocks and what comes after them are trained."""

    def make(model: nn.Module) -> Snippet:
        trained = _tail(model, keep, find_blocks(model, block))
        listed = ", ".join(path(name) for name in trained)
        body = f"""
def build_model():
    model = build_model_before_freeze()
    model.requires_grad_(False)
    for module in ({listed},):
        module.requires_grad_(True)
    return model
"""
        return Snippet(measure="freeze", body=body, wraps=("build_model",), imports=())

    on_model(training, make)


def _tail(model: nn.Module, keep: int, found: Blocks | None) -> list[str]:
    """Names of the last ``keep`` blocks and of all modules that are registered after the last block."""
    names = [name for name, module in model.named_children() if next(module.parameters(), None) is not None]
    if found is None:
        if len(names) < 2:
            raise MeasureError("the model has no last layer that could be trained alone")
        return names[-1:]
    if not 0 <= keep < len(found.names):
        raise MeasureError(f"the model has {len(found.names)} blocks of class {found.class_name}: cannot keep {keep}")
    last = found.names[-1].split(".")
    tail: list[str] = []
    for depth in reversed(range(len(last))):
        outer = ".".join(last[:depth])
        children = list(model.get_submodule(outer).named_children())
        position = [name for name, _ in children].index(last[depth])
        tail += [
            f"{outer}.{name}" if outer else name
            for name, module in children[position + 1 :]
            if next(module.parameters(), None) is not None
        ]
    return [*found.names[len(found.names) - keep :], *tail]

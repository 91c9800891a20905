"""Measures that keep fewer activations on the GPU until backward."""

from __future__ import annotations

from torch import nn

from vramdoc.errors import MeasureError
from vramdoc.worker.blocks import Blocks, find_blocks
from vramdoc.worker.measures.registry import measure
from vramdoc.worker.measures.snippet import Snippet, on_model
from vramdoc.worker.training import Training


@measure("checkpoint")
def checkpoint(
    training: Training, blocks: int | None = None, block: str | None = None, which: str | None = None
) -> None:
    """Repeated blocks keep their input only, and run once more in backward."""

    def make(model: nn.Module) -> Snippet:
        chosen = choose(model, blocks, block, which)
        _note_batch_norm(training, model, block)
        body = f"""
def build_model():
    model = build_model_before_checkpoint()
{_without_cache(model)}    for block in {chosen}:
        block.forward = functools.partial(torch.utils.checkpoint.checkpoint, block.forward, use_reentrant=False)
    return model
"""
        return Snippet(
            measure="checkpoint",
            body=body,
            wraps=("build_model",),
            imports=("functools", "torch", "torch.utils.checkpoint"),
        )

    on_model(training, make)


@measure("selective_checkpoint")
def selective_checkpoint(
    training: Training, blocks: int | None = None, block: str | None = None, which: str | None = None
) -> None:
    """Repeated blocks keep the results of matrix products, convolutions and attention, and run the rest once more."""

    def make(model: nn.Module) -> Snippet:
        chosen = choose(model, blocks, block, which)
        _note_batch_norm(training, model, block)
        kept = "".join(f"    torch.ops.aten.{operation}.default,\n" for operation in _KEPT)
        body = f"""
kept_by_selective_checkpoint = [
{kept}]


def build_model():
    model = build_model_before_selective_checkpoint()
    contexts = functools.partial(
        torch.utils.checkpoint.create_selective_checkpoint_contexts, kept_by_selective_checkpoint
    )
{_without_cache(model)}    for block in {chosen}:
        block.forward = functools.partial(
            torch.utils.checkpoint.checkpoint, block.forward, use_reentrant=False, context_fn=contexts
        )
    return model
"""
        return Snippet(
            measure="selective_checkpoint",
            body=body,
            wraps=("build_model",),
            imports=("functools", "torch", "torch.utils.checkpoint"),
        )

    on_model(training, make)


_KEPT = (
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "convolution",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
)
"""What is dear to compute, as the dispatcher names it."""


def choose(model: nn.Module, count: int | None, class_name: str | None, which: str | None) -> str:
    """An expression over ``model`` for the first ``count`` of its repeated blocks, or those numbered in ``which``.

    Raises :class:`MeasureError` where there are none, or not so many.
    """
    found = repeated(model, class_name)
    total = len(found.modules)
    if which is not None:
        numbers = _numbers(which, total)
        if len(numbers) == total:
            return found.code
        return f"[block for number, block in enumerate({found.code}) if number in {set(numbers)!r}]"
    if count is None or count == total:
        return found.code
    if not 1 <= count <= total:
        raise MeasureError(f"the model has {total} blocks of class {found.class_name}, not {count}")
    return f"{found.code}[:{count}]"


def repeated(model: nn.Module, class_name: str | None) -> Blocks:
    """The repeated blocks; raises :class:`MeasureError` where there are none."""
    found = find_blocks(model, class_name)
    if found is None:
        raise MeasureError("no blocks of one class repeat in the model", hint="name the class with --block")
    return found


def _numbers(text: str, total: int) -> list[int]:
    """``"0,2,5-7"`` as numbers."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            numbers.update(range(int(first), int(last or first) + 1))
        except ValueError:
            raise MeasureError(f"not a list of block numbers: {text!r}", hint="write it as 0,2,5-7") from None
    if not numbers or max(numbers) >= total:
        raise MeasureError(f"there are {total} blocks, numbered from 0: no {text!r}")
    return sorted(numbers)


def _without_cache(model: nn.Module) -> str:
    """A Hugging Face decoder appends to its cache of keys and values whenever a block runs, so also the second time."""
    caches = getattr(getattr(model, "config", None), "use_cache", False)
    return "    model.config.use_cache = False\n" if caches else ""


def _note_batch_norm(training: Training, model: nn.Module, class_name: str | None) -> None:
    norm = nn.modules.batchnorm._BatchNorm
    if any(isinstance(part, norm) for module in repeated(model, class_name).modules for part in module.modules()):
        training.notes.append("checkpointed batch norm updates its running statistics twice a step")

"""Which choices the search may take on each axis, and how far each may go. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vramdoc.advise import measures
from vramdoc.advise.measures import Measure, Option
from vramdoc.report.measurement import Choice

BF16 = "bf16_autocast"
DEFAULT_ALLOW = ("speed", BF16, "fsdp_bf16")
"""What plans may take beside ``free`` where the user says nothing: the same result, and bf16 where the GPU has it."""

ORDER: tuple[tuple[str, ...], ...] = (
    ("precision",),
    ("trainable",),
    ("batch",),
    ("attention", "loss", "layout", "allocator", "gradients", "kernels"),
    ("optimizer", "update"),
    ("sharding",),
    ("checkpointing", "offload"),
    ("micro_batch",),
)
"""The axes in the order in which plans are built."""


def is_allowed(measure: Measure, allow: Sequence[str]) -> bool:
    """Whether the user's leave covers ``measure``. ``free`` needs none, and sharding is asked for by --gpus."""
    return measure.tier in ("free", "sharding") or measure.tier in allow or measure.name in allow


def alone(measure: Measure, *, block: str | None) -> Choice:
    """The measure as it is tried alone: as far as it goes by itself."""
    options = {option.name: option.default for option in measure.options if option.default is not None}
    return Choice(name=measure.name, options={**options, **_block(measure, block)})


def choices(measure: Measure, *, block: str | None, blocks: int, batch: int) -> list[Choice]:
    """The measure at every setting that is worth a try, the gentlest first where that can be told."""
    for option in measure.options:
        values = list(_values(option, blocks=blocks, batch=batch))
        if values:
            fixed = _block(measure, block)
            return [Choice(name=measure.name, options={**fixed, option.name: value}) for value in values]
    return [alone(measure, block=block)]


def all_blocks(choice: Choice) -> bool:
    """Whether a choice that takes some of the repeated blocks takes all of them."""
    return takes_blocks(choice.name) and not {"blocks", "which"} & choice.options.keys()


def takes_blocks(name: str) -> bool:
    """Whether the measure may be applied to some of the repeated blocks."""
    return any(option.name == "blocks" for option in measures.by_name(name).options)


def _block(measure: Measure, block: str | None) -> dict[str, int | float | str | bool]:
    return {"block": block} if block is not None and any(each.name == "block" for each in measure.options) else {}


def _values(option: Option, *, blocks: int, batch: int) -> Iterator[int | float | str | bool]:
    """The values that are worth a try; none for what the worker decides or the search finds by itself."""
    if option.values:
        yield from option.values
    elif option.lowest is not None and option.highest == "batch":
        parts = option.lowest
        while parts <= batch:
            if batch % parts == 0:
                yield parts
            parts *= 2
    elif option.lowest is not None and option.name != "blocks":
        default = option.default if isinstance(option.default, int) else option.lowest
        highest = blocks if option.highest == "blocks" else option.highest
        half = highest // 2 if isinstance(highest, int) else default
        yield from sorted({default, max(half, option.lowest)})

"""One call of a PyTorch operator, and what its schema says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch._ops import OpOverload

from vramdoc.worker.nests import tensors_of

_WRITES_ALL = frozenset(
    "aten." + name
    for name in (
        "fill_", "zero_", "copy_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "geometric_",
        "cauchy_", "log_normal_", "_foreach_zero_", "_foreach_copy_",
    )
)  # fmt: skip
"""In-place operators whose result does not depend on what was there."""

_ONLY_RESHAPES = frozenset({"aten.set_", "aten.resize_", "aten.resize_as_", "aten._resize_output_"})
"""Operators that change which memory a tensor sees, and not what is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What the schema of an operator says."""

    name: str  # "aten.nonzero", the same for all its overloads
    writes: tuple[tuple[int, str], ...]  # position and name of every argument that is written to
    writes_all: bool  # nothing that was in the written arguments remains
    touches_values: bool  # False where it only changes which memory a tensor sees
    is_random: bool  # draws from the random generator
    is_foreach: bool  # takes lists of tensors and treats them one by one


@lru_cache(maxsize=4096)
def operator(func: OpOverload) -> Operator:
    """The facts of ``func``'s schema."""
    schema = func._schema
    name = str(func.overloadpacket)
    written = [
        (position, argument)
        for position, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return Operator(
        name=name,
        writes=tuple((position, argument.name) for position, argument in written),
        writes_all=name in _WRITES_ALL or (bool(written) and all(argument.kwarg_only for _, argument in written)),
        touches_values=name not in _ONLY_RESHAPES,
        is_random=torch.Tag.nondeterministic_seeded in func.tags,
        is_foreach=name.startswith("aten._foreach_"),
    )


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the dispatcher hands it over."""

    func: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    operator: Operator

    def run(self) -> Any:
        """Runs it on the device."""
        return self.func(*self.args, **self.kwargs)

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """The argument at ``position``, or called ``name``."""
        return self.args[position] if position < len(self.args) else self.kwargs.get(name, default)

    def tensors(self) -> list[torch.Tensor]:
        """Every tensor among the arguments, those in lists included."""
        return list(tensors_of((*self.args, *self.kwargs.values())))

    def written(self) -> list[torch.Tensor]:
        """The tensors that it writes to."""
        return [
            tensor for position, name in self.operator.writes for tensor in tensors_of(self.argument(position, name))
        ]

    def replace(self, *args: Any, **kwargs: Any) -> Call:
        """The same operator with other arguments."""
        return Call(self.func, args, kwargs, self.operator)


def map_nest(transform: Callable[[Any], Any], nest: Any) -> Any:
    """``transform`` of every leaf in a nest of lists, tuples and dicts."""
    if isinstance(nest, dict):
        return {key: map_nest(transform, value) for key, value in nest.items()}
    if type(nest) in (list, tuple):
        return type(nest)([map_nest(transform, value) for value in nest])
    return transform(nest)

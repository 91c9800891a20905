"""Nests of lists and tuples, as operators take and give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Every tensor in a nest of lists and tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_of(each)

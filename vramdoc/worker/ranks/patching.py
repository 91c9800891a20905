"""Puts other functions in the place of torch's, for as long as a context lasts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d


def replace(stack: ExitStack, owner: Any, name: str, replacement: Any) -> None:
    """Sets ``owner.name`` until ``stack`` closes."""
    stack.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, replacement)


def replace_collective(stack: ExitStack, name: str, replacement: Any) -> None:
    """The same for a function that both ``torch.distributed`` and its implementation module carry."""
    for module in (c10d, dist):
        replace(stack, module, name, replacement)


@contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables, and puts the old ones back at the end."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def leave_groups() -> None:
    """Ends every process group, so that no watchdog thread is left when the interpreter finalises."""
    if dist.is_initialized():
        dist.destroy_process_group()

"""Collectives of Python objects: what they take on the device, and how the objects travel.

Under NCCL torch pickles the objects into device memory. A null GPU keeps no memory, so here the objects take
another way (their own copy, or gloo), while the device memory that torch would have taken is allocated and
freed at the same point: an ``all_gather_object`` over 512 ranks can leave its mark on the reserved bytes.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch.distributed import ProcessGroup
from torch.distributed import distributed_c10d as c10d

from vramdoc.worker.ranks.patching import replace_collective

Arguments = Mapping[str, Any]
"""Every argument of a collective by name, defaults filled in, ``group`` resolved."""
Carrier = Callable[[str, Callable[..., Any], dict[str, Any]], Any]
"""(name, torch's function, arguments) -> the collective's result."""

NAMES = (
    "all_gather_object",
    "gather_object",
    "broadcast_object_list",
    "scatter_object_list",
    "send_object_list",
    "recv_object_list",
)
_LENGTH_BYTES = 8  # torch sends the length of each pickle as an int64


def install(stack: ExitStack, carry: Carrier) -> None:
    """Has ``carry`` move the objects of every object collective until ``stack`` closes."""
    for name in NAMES:
        replace_collective(stack, name, _collective(name, getattr(c10d, name), carry))


def on_device(group: ProcessGroup, device: Any = None) -> bool:
    """Whether torch would move objects of this group through the device."""
    return torch.device(device or c10d._get_object_coll_device(group)).type == "cuda"


def is_root(arguments: Arguments, role: str) -> bool:
    """Whether this rank is the ``role`` (``src`` or ``dst``); rank 0 is where none is named."""
    group = arguments["group"]
    in_group = arguments.get(f"group_{role}")
    if in_group is not None:
        return bool(group.rank() == in_group)
    in_world = arguments[role]
    return bool(c10d.get_rank() == (0 if in_world is None else in_world))


def _collective(name: str, original: Callable[..., Any], carry: Carrier) -> Callable[..., Any]:
    signature = inspect.signature(original)

    def collective(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = bound.arguments
        if c10d._rank_not_in_group(arguments["group"]):
            return original(**arguments)  # warns, as ever
        arguments["group"] = arguments["group"] or c10d._get_default_group()
        if on_device(arguments["group"], arguments.get("device")):
            _occupy(_device_bytes(name, arguments))
        return carry(name, original, arguments)

    collective.__name__ = name
    collective.__doc__ = original.__doc__
    return collective


def _occupy(sizes: list[int]) -> None:
    """Allocates blocks of these sizes side by side on the current device, and lets go of them."""
    blocks = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]
    del blocks


def _device_bytes(name: str, arguments: Arguments) -> list[int]:
    """Sizes of the tensors that are alive together in torch's own function, in the order it makes them.

    What peers send is taken to be as long as what this rank has.
    """
    ranks = arguments["group"].size()
    if name in ("all_gather_object", "gather_object"):
        length = len(pickle.dumps(arguments["obj"]))
        receives = name == "all_gather_object" or is_root(arguments, "dst")
        return [length, _LENGTH_BYTES, _LENGTH_BYTES * ranks, *([length * ranks] if receives else [])]
    if name == "scatter_object_list":
        objects = arguments["scatter_object_input_list"] or []
        lengths = [len(pickle.dumps(item)) for item in objects] if is_root(arguments, "src") else []
        longest = max(lengths, default=1)
        padded = [size for _ in lengths for size in (longest, _LENGTH_BYTES)]
        return [*padded, _LENGTH_BYTES, longest, _LENGTH_BYTES]
    lengths = [len(pickle.dumps(item)) for item in arguments["object_list"]]
    sends = name == "send_object_list" or (name == "broadcast_object_list" and is_root(arguments, "src"))
    each = [size for length in lengths for size in (length, _LENGTH_BYTES)] if sends else []
    joined = [] if sends and len(lengths) == 1 else [sum(lengths)]
    return [*each, _LENGTH_BYTES * len(lengths), *joined]

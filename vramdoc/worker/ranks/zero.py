"""``ZeroRedundancyOptimizer.consolidate_state_dict``: the one place of torch that sends objects by hand.

Every rank's optimizer state goes as one pickle through device memory. As with the other object collectives
the state takes another way here, and the device memory of the original is allocated and freed at the same
point.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d
from torch.distributed.optim import ZeroRedundancyOptimizer, zero_redundancy_optimizer

from vramdoc.worker.ranks.patching import replace

State = dict[str, Any]
"""A ``state_dict`` of the optimizer that one rank runs on its own share of the parameters."""
Exchange = Callable[[ZeroRedundancyOptimizer, Any, int], Any]
"""(optimizer, what this rank would send, global rank of the sender) -> the sender's object, on the host."""


def install(stack: ExitStack, exchange: Exchange) -> None:
    """Has ``exchange`` move the states until ``stack`` closes."""
    consolidate = ZeroRedundancyOptimizer.consolidate_state_dict

    def consolidate_state_dict(self: ZeroRedundancyOptimizer, to: int = 0) -> None:
        def broadcast_object(obj: Any, *, src_rank: int, device: torch.device, **_group: Any) -> Any:
            sends = c10d.get_rank() == src_rank
            received = exchange(self, obj, src_rank)
            return _send(obj, device) if sends else _receive(received, device)

        with ExitStack() as during:
            replace(during, zero_redundancy_optimizer, "_broadcast_object", broadcast_object)
            consolidate(self, to)

    replace(stack, ZeroRedundancyOptimizer, "consolidate_state_dict", consolidate_state_dict)


def state_as_on(optimizer: ZeroRedundancyOptimizer, sender: int) -> State:
    """What rank ``sender`` of the optimizer's group would send, made from this rank's own state.

    The sender's share of the parameters is known. Each entry of its state is a zero tensor of the parameter's
    shape where this rank's entry has the shape of this rank's parameter, and this rank's value else
    (``step``). A rank without parameters of its own knows no entries: the state is empty then.
    """
    own: State = optimizer.optim.state_dict()
    own_parameters = [parameter for group in optimizer.optim.param_groups for parameter in group["params"]]
    example = own["state"].get(0, {})
    shape = own_parameters[0].shape if own_parameters else None
    state: dict[int, dict[str, Any]] = {}
    shares = optimizer._partition_parameters()  # type: ignore[attr-defined]
    groups = []
    for own_group, group in zip(own["param_groups"], shares[sender], strict=True):
        first = len(state)
        for parameter in group["params"]:
            state[len(state)] = {
                key: torch.zeros(parameter.shape, dtype=value.dtype)
                if isinstance(value, torch.Tensor) and value.shape == shape
                else value
                for key, value in example.items()
            }
        groups.append(own_group | {"params": list(range(first, len(state)))})
    return {"state": state if example else {}, "param_groups": groups}


def on_host(obj: Any) -> Any:
    """``obj`` with its tensors on the host, so that it can be unpickled without taking device memory."""
    return _copied_to(obj, torch.device("cpu"))


def _send(obj: Any, device: torch.device) -> Any:
    length, pickled = torch.zeros(1, dtype=torch.long, device=device), _pickle_on(obj, device)
    del length, pickled
    return obj


def _receive(obj: Any, device: torch.device) -> Any:
    length, pickled = torch.zeros(1, dtype=torch.long, device=device), _pickle_on(obj, device)
    received = _copied_to(obj, device)
    del length, pickled
    return received


def _copied_to(obj: Any, device: torch.device) -> Any:
    copy = zero_redundancy_optimizer._recursive_copy_to_device  # type: ignore[attr-defined]
    return copy(obj, non_blocking=False, device=device)


def _pickle_on(obj: Any, device: torch.device) -> torch.Tensor:
    """Device memory of the size that ``obj`` takes when torch pickles it."""
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    return torch.empty(buffer.tell(), dtype=torch.uint8, device=device)

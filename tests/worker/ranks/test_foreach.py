"""The short cuts for operations over lists of shards compute what DTensor computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CODE = """
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from vramdoc.worker.ranks import World, acting_as

handlers = DTensor._op_dispatcher._custom_op_handlers
before = dict(handlers)
with acting_as(World(rank=1, size=2)):
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))
    new = set(handlers) - set(before)

    def shards(value, *placements):
        locals_ = [torch.full((rows, 3), float(value)) for rows in (4, 0)]  # this rank may hold nothing of one
        return [
            DTensor.from_local(local, mesh, [place], run_check=False, shape=(4 + len(local), 3), stride=(3, 1))
            for local, place in zip(locals_, placements, strict=True)
        ]

    def seen(tensors):
        return [[str(t.placements), list(t.shape), t.to_local().tolist()] for t in tensors]

    def both(work):
        quick = seen(work())
        kept = {operation: handlers.pop(operation) for operation in new}
        own = seen(work())
        handlers.update(kept)
        return [quick, own]

    rows = (Shard(0), Shard(0))
    def in_place():
        values = shards(3, *rows)
        torch._foreach_addcdiv_(values, shards(2, *rows), shards(4, *rows), -0.5)
        torch._foreach_mul_(values, 2.0)
        return values

    found = {
        "in place": both(in_place),
        "new": both(lambda: torch._foreach_sqrt(torch._foreach_add(shards(3, *rows), 1.0))),
        "partial": both(lambda: torch._foreach_mul(shards(3, Partial(), Shard(0)), 2.0)),
        "unlike": seen(torch._foreach_add(shards(1, Replicate(), Shard(0)), shards(2, Replicate(), Shard(0)))),
    }
emit(found | {"installed": len(new), "left": dict(handlers) == before})
"""


def test_results_are_dtensors_own(on_null_gpu: Callable[..., Any]) -> None:
    """Values and layouts, also where a rank holds nothing, and where the short cut does not apply."""
    found = on_null_gpu(CODE)
    for case in ("in place", "new", "partial"):
        quick, own = found[case]
        assert quick == own, case
    assert found["in place"][0][0][2] == [[5.5] * 3] * 4
    assert found["new"][0][0][2] == [[2.0] * 3] * 4
    assert found["unlike"][0][2] == [[3.0] * 3] * 4
    assert found["installed"] > 40
    assert found["left"]

"""Lets finished collectives go before the next step, as they would have in life.

NCCL's group keeps the tensors of a collective that nobody waited for (DDP only asks for its future) until its
watchdog, which looks every 100 ms, has seen it end, and then until the next collective. A training step on a GPU
takes longer than that. On a null GPU it takes a few milliseconds, and DDP's first buckets, as large as all
gradients, would still be there when it makes the final ones: a peak that hardly any real run has, and a different
one each time.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch._compile import _disable_dynamo
from torch.distributed import ProcessGroup, ProcessGroupNCCL
from torch.nn.parallel import DistributedDataParallel

from vramdoc.worker.ranks.patching import replace


def install(stack: ExitStack) -> None:
    """Has every forward of DDP begin when the collectives before it are done, until ``stack`` closes."""
    prepare = DistributedDataParallel._pre_forward

    def pre_forward(self: DistributedDataParallel, *inputs: Any, **kwargs: Any) -> Any:
        _wait_for_watchdog(self.process_group)
        return prepare(self, *inputs, **kwargs)

    replace(stack, DistributedDataParallel, "_pre_forward", pre_forward)


@_disable_dynamo  # a compiled DDP calls it too; the public decorator would load all of the compiler here
def _wait_for_watchdog(group: ProcessGroup) -> None:
    if torch.device("cuda") in group._device_types:
        backend = group._get_backend(torch.device("cuda"))
        if isinstance(backend, ProcessGroupNCCL):
            backend._wait_for_pending_works()  # type: ignore[attr-defined]

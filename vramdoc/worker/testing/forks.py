"""Forks that use CUDA and threads."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import ModuleType
from typing import Any


def keep_forkable(torch: ModuleType) -> Callable[[], None]:
    """Before test modules are imported; returns what is to be called before a test runs, in the fork.

    Modules ask at import whether there is a GPU. The question to the driver would end CUDA for every child
    (``poison_fork`` in torch/csrc/cuda/Module.cpp), so it is answered here. And a pool of OpenMP threads does not
    survive a fork: with one thread none is made.
    """
    bindings: Any = torch._C
    device_count, threads = bindings._cuda_getDeviceCount, torch.get_num_threads()
    bindings._cuda_getDeviceCount = lambda: 1
    torch.set_num_threads(1)
    # What optimizers import in their first step, once instead of in each child.
    import torch._dynamo
    import torch.optim
    import torch.utils.checkpoint

    from vramdoc.worker import dispatch

    dispatch.prepare()

    def before_test() -> None:
        bindings._cuda_getDeviceCount = device_count
        torch.set_num_threads(threads)
        # What the fork shares stays shared: a collection does not write to the objects that are there now.
        gc.freeze()

    return before_test

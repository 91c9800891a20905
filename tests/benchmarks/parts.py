"""What profile_speed.py times, each in a process of its own on the null GPU: ``python parts.py PART SAMPLE``."""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import time
from pathlib import Path
from types import ModuleType

STEPS = 4


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("sample", path)
    assert spec is not None
    assert spec.loader is not None
    sample = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sample)
    return sample


def bare(path: str, steps: int) -> None:
    """The program that a profile is compared with: nothing but torch and the steps."""
    import torch

    from vramdoc.worker.initialisers import SkipInitialisers

    sample = load(path)
    with SkipInitialisers():
        model = sample.build_model()
    model = model.cuda()
    optimizer = sample.make_optimizer(model)
    for _ in range(steps):
        batch = torch.utils._pytree.tree_map(lambda part: part.cuda(), sample.make_batch(sample.BATCH_SIZE))
        sample.compute_loss(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()


def attributed(path: str) -> dict[str, float]:
    """Seconds of one attributed step, by when the worker reports that each begins; the first is not counted."""
    from vramdoc.report.measurement import Request
    from vramdoc.worker.measure import measure

    begun: list[tuple[str, float]] = []
    request = Request(target=str(Path(path).resolve()), steps=STEPS, attributed=True)
    measure(request, null=True, progress=lambda stage, *_: begun.append((stage, time.perf_counter())))
    ended = time.perf_counter()
    starts = [moment for stage, moment in begun if stage == "running steps"]
    read = next(moment for stage, moment in begun if stage == "reading the recording")
    step = statistics.median(after - before for before, after in zip(starts[1:], [*starts[2:], read], strict=True))
    return {"step": step, "with_reading": step + (ended - read) / STEPS}


def memtracker(path: str) -> dict[str, float]:
    """Seconds of one step of the same model on fake tensors under torch's own tracker; the first is not counted."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    sample = load(path)
    seconds = []
    with FakeTensorMode():
        with torch.device("cuda"):
            model = sample.build_model()
        batch = torch.utils._pytree.tree_map(lambda part: part.cuda(), sample.make_batch(sample.BATCH_SIZE))
        optimizer = sample.make_optimizer(model)
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            for _ in range(STEPS):
                started = time.perf_counter()
                sample.compute_loss(model, batch).backward()
                optimizer.step()
                optimizer.zero_grad()
                seconds.append(time.perf_counter() - started)
                tracker.reset_mod_stats()
    return {"step": statistics.median(seconds[1:])}


if __name__ == "__main__":
    part, sample_path = sys.argv[1:3]
    if part == "bare":
        bare(sample_path, int(sys.argv[3]))
    else:
        print(json.dumps({"attributed": attributed, "memtracker": memtracker}[part](sample_path)))

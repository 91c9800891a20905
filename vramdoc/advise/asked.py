"""What the user asked for, checked."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vramdoc import hardware, target
from vramdoc.advise import measures
from vramdoc.advise.options import DEFAULT_ALLOW
from vramdoc.errors import UnknownGpuError, UsageError
from vramdoc.report.advice import Room
from vramdoc.runner import real
from vramdoc.runner.profile import DEFAULT_GPU

MARGIN = 0.05
TIERS = ("free", "speed", "numerics", "training")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request for advice."""

    path: Path  # of the target, absolute
    name: str  # of the target, as the user gave it
    gpu: hardware.Gpu
    gpus: int = 1
    gpus_per_node: int | None = None  # None: all on one machine
    budget_bytes: int | None = None  # limit on the reserved peak instead of what the GPU has
    batch_size: int | None = None
    allow: tuple[str, ...] = DEFAULT_ALLOW  # tiers and measures beside free
    margin: float = MARGIN  # share of the limit that stays free
    block: str | None = None  # class of the repeated blocks
    verify: bool = False
    measure_time: bool = False
    timeout: float = 600.0  # seconds, each run
    assume: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def flags(self) -> str:
        """The flags that ask the same, but for --allow and what only changes what is shown."""
        said = {
            "--gpu": self.gpu.short_name,
            "--gpus": self.gpus if self.gpus > 1 else None,
            "--gpus-per-node": self.gpus_per_node,
            "--budget": f"{self.budget_bytes}B" if self.budget_bytes is not None else None,
            "--batch-size": self.batch_size,
            "--block": self.block,
        }
        return " ".join(f"{flag} {shlex.quote(str(value))}" for flag, value in said.items() if value is not None)

    @property
    def allow_flag(self) -> str:
        """The flag that gives the same leave; "" for the default."""
        return "" if self.allow == DEFAULT_ALLOW else f"--allow {','.join(self.allow)}"

    @property
    def room(self) -> Room:
        """What a plan has to fit into."""
        context, exact = hardware.context_or_estimate(self.gpu)
        whole = self.budget_bytes if self.budget_bytes is not None else self.gpu.total_bytes - context
        return Room(
            allowed_bytes=int(whole * (1 - self.margin)),
            total_bytes=self.gpu.total_bytes,
            context_bytes=context,
            context_estimated=not exact,
            budget_bytes=self.budget_bytes,
            margin=self.margin,
        )


def checked(
    path: str | os.PathLike[str],
    *,
    gpu: str | None = None,
    gpus: int = 1,
    gpus_per_node: int | None = None,
    budget_bytes: int | None = None,
    batch_size: int | None = None,
    allow: Sequence[str] | None = None,
    margin: float | None = None,
    block: str | None = None,
    verify: bool = False,
    measure_time: bool = False,
    timeout: float = 600.0,
    assume: dict[str, str] | None = None,
) -> Asked:
    """The request with its GPU looked up. Raises :class:`UsageError` for what cannot be."""
    for name, value in (
        ("number of GPUs", gpus), ("number of GPUs per node", gpus_per_node), ("budget", budget_bytes),
        ("batch size", batch_size), ("timeout", timeout),
    ):  # fmt: skip
        if value is not None and value <= 0:
            raise UsageError(f"{name} is {value}", hint=f"give a {name} of at least 1")
    if margin is not None and not 0 <= margin < 1:
        raise UsageError(f"margin is {margin:g}", hint="give a share of the memory: --margin 5%")
    if measure_time and not real.gpu_count():
        raise UsageError("--measure-time needs a GPU, and there is none here", hint="leave it out: times are modelled")
    notes: list[str] = []
    found = _gpu(gpu, notes)
    # A budget is the user's own figure: it is taken as it is.
    share = margin if margin is not None else MARGIN if budget_bytes is None else 0.0
    return Asked(
        path=target.locate(path),
        name=os.fspath(path),
        gpu=found,
        gpus=gpus,
        gpus_per_node=gpus_per_node,
        budget_bytes=budget_bytes,
        batch_size=batch_size,
        allow=_allowed(allow),
        margin=share,
        block=block,
        verify=verify,
        measure_time=measure_time,
        timeout=timeout,
        assume=assume or {},
        notes=tuple(notes),
    )


def _gpu(name: str | None, notes: list[str]) -> hardware.Gpu:
    """The GPU that is named, else the machine's own, else the default, with a note that says so."""
    if name is not None:
        return hardware.find(name)
    own = real.gpu_name()
    if own:
        try:
            return hardware.find(own)
        except UnknownGpuError:
            notes.append(f"the tables do not list this machine's {own}")
    gpu = hardware.find(DEFAULT_GPU)
    notes.append(f"predicted for {gpu.name} (choose one with --gpu)")
    return gpu


def _allowed(allow: Sequence[str] | None) -> tuple[str, ...]:
    if allow is None:
        return DEFAULT_ALLOW
    known = [*TIERS, *(measure.name for measure in measures.ALL)]
    for name in allow:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"tiers are {', '.join(TIERS)}; or name a measure"
            raise UsageError(f"no tier or measure is called {name!r}", hint=hint)
    return tuple(allow)

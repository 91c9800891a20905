"""The raw material of an attribution: the allocator's events, and what was running then. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MARK = "="
"""First character of a mark's text: ``=phase backward 2`` or ``=parameters h.0.attn.weight``."""


@dataclass(frozen=True, slots=True)
class Context:
    """What was running when an allocation was made; its place in ``Recording.contexts`` is the metadata."""

    op: str  # "aten.mm"; "" outside any operation
    module: str  # qualified name
    file: str  # absolute; "" where no user code is on the stack
    line: int
    function: str
    kind: str  # "forward", "backward" (run by an autograd node) or "recompute" (a forward inside backward)


@dataclass(slots=True)
class Recording:
    """What one attributed pass wrote down."""

    contexts: list[Context] = field(default_factory=list)
    # Number of a context -> addresses of its results' storages: what else the operation took is scratch.
    outputs: dict[int, tuple[int, ...]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)  # as the allocator's history gives them
    classes: dict[str, str] = field(default_factory=dict)  # module's qualified name -> class name
    # The model is spread over ranks: what no operation took holds what FSDP gathers, or is a bucket of DDP.
    distributed: bool = False

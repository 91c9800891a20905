"""A training step that is made of numbers: its peak and its time follow from the choices by plain rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vramdoc.advise.candidate import Candidate, Result
from vramdoc.advise.cost import TimeEstimate
from vramdoc.report.measurement import Choice

MIB = 2**20


def estimate(seconds: float) -> TimeEstimate:
    """A time of one part only."""
    return TimeEstimate(
        seconds=seconds,
        low=seconds,
        high=seconds,
        parts={"matmul bf16": seconds},
        gpu_seconds=seconds,
        host_seconds=0.0,
        communication_seconds=0.0,
        exposed_communication_seconds=0.0,
        transfer_seconds=0.0,
        launches=1,
    )


@dataclass(kw_only=True)
class Step:
    """The fake: ``state`` MiB stay, ``saved`` MiB a block are activations that checkpointing frees.

    The peak is the higher of backward (state and activations) and the optimizer's step (state and its temporaries,
    which a fused optimizer does without). Checkpointing a block costs a thirtieth of the step.
    """

    state: int = 400
    temporaries: int = 300
    blocks: Sequence[int] = (50,) * 12
    batch: int = 8
    tried: list[Candidate] = field(default_factory=list)

    def __call__(self, candidates: Sequence[Candidate]) -> list[Result]:
        self.tried += candidates
        return [self.result(each) for each in candidates]

    def result(self, candidate: Candidate) -> Result:
        options = {choice.name: choice.options for choice in candidate.choices}
        if "channels_last" in options:
            return Result(candidate=candidate, error="the model has no two-dimensional convolution", applies=False)
        activations = sum(size for index, size in enumerate(self.blocks) if index not in self._checkpointed(options))
        parts = int(options.get("micro_batch", {}).get("parts", 1))
        size = candidate.batch_size or self.batch
        backward = self.state + activations * size / self.batch / parts
        step = self.state + (0 if "fused_optimizer" in options else self.temporaries)
        seconds = 1.0 + len(self._checkpointed(options)) / 30 + 0.5 * (parts - 1)
        seconds *= (0.6 if "bf16_autocast" in options else 1.0) * (0.95 if "fused_optimizer" in options else 1.0)
        peak = round(max(backward, step) * MIB)
        return Result(
            candidate=candidate,
            allocated_bytes=peak,
            reserved_bytes=peak,
            samples=size,
            time=estimate(seconds * size / self.batch),
        )

    def _checkpointed(self, options: dict[str, dict[str, int | float | str | bool]]) -> set[int]:
        if "checkpoint" not in options:
            return set()
        chosen = options["checkpoint"]
        if "which" in chosen:
            return {int(number) for number in str(chosen["which"]).split(",")}
        return set(range(int(chosen.get("blocks", len(self.blocks)))))


def choose(*names: str, **options: int | float | str | bool) -> Candidate:
    """A candidate of measures by name; ``options`` are those of the last."""
    candidate = Candidate()
    for name in names:
        changed = candidate.having(Choice(name=name, options=options if name == names[-1] else {}))
        assert changed is not None
        candidate = changed
    return candidate

"""What the handlers of operators share: the values, the answers of the rules, and the record of reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch

from vramdoc import assumptions
from vramdoc.report.model import Assumption
from vramdoc.worker.values.frames import in_recurrent_layer, user_position
from vramdoc.worker.values.store import TOKEN, Known, ValueStore

_SEED = 20250101


class Context:
    """State of one shadowed run."""

    def __init__(self, assume: Mapping[str, str]) -> None:
        assumptions.check(assume)
        self.store = ValueStore()
        self._choices = assumptions.choices(assume)
        self._reads: Counter[tuple[str, str, int, str]] = Counter()
        self._random_state = torch.Generator().manual_seed(_SEED).get_state()

    def choice(self, rule: str) -> str:
        """The answer in force for ``rule``."""
        return self._choices[rule]

    def note(self, op: str, rules: Iterable[str]) -> None:
        """Records that ``op`` handed a value to the program that rests on ``rules`` (none: it is exact)."""
        for rule in rules:
            # Between layers cuDNN's dropout reads the seed that it drew, which steers nothing.
            if rule == TOKEN or (rule == "random" and in_recurrent_layer()):
                continue
            self._reads[(op, *user_position(), rule)] += 1

    def assumptions(self) -> tuple[Assumption, ...]:
        """What was read on rules so far, the most read first."""
        return tuple(
            Assumption(op=op, file=file, line=line, rule=rule, reads=reads)
            for (op, file, line, rule), reads in self._reads.most_common()
        )

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Host random numbers from a stream of their own: the program's stream must not move."""
        generator = torch.default_generator
        theirs = generator.get_state()
        generator.set_state(self._random_state)
        try:
            yield
        finally:
            self._random_state = generator.get_state()
            generator.set_state(theirs)

    def selection(self, shape: torch.Size, rule: str = "index") -> Known:
        """A mask of ``shape`` that selects as many elements as ``rule`` says; memory is shared where it can be."""
        choice = self.choice(rule)
        if choice in ("full", "empty"):
            return Known(torch.tensor(choice == "full").expand(shape), frozenset({rule}))
        mask = torch.zeros(shape.numel(), dtype=torch.bool)
        mask[:: 2 if choice == "half" else max(shape.numel(), 1)] = True
        return Known(mask.view(shape), frozenset({rule}))

    def constant(self, tensor: torch.Tensor) -> Known:
        """The value that a program is told when it reads the unknown ``tensor``, expanded from one element."""
        if tensor.is_floating_point() or tensor.is_complex():
            rule, value = "finite", 1.0 if self.choice("finite") == "finite" else float("nan")
        elif tensor.dtype is torch.bool and tensor.numel() == 1:
            rule, value = "condition", float(self.choice("condition") == "true")
        elif tensor.dtype is torch.bool:
            return self.selection(tensor.shape)
        else:
            rule, value = "number", float(self.choice("number") == "one")
        return Known(torch.tensor(value).to(tensor.dtype).expand(tensor.shape), frozenset({rule}))

    def answer(self, op: str, tensor: torch.Tensor, otherwise: Known | None = None) -> Known:
        """The value of ``tensor`` as ``op`` hands it to the program, recorded where it is not exact."""
        known = self.store.read(tensor) or otherwise or self.constant(tensor)
        self.note(op, known.rules)
        return known

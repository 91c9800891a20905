"""Values that rules give to the results of operators on unknown values.

Most results of unknown values are unknown as well. The operators here are those whose result steers a program, and
of which a rule says what it is without knowing what they took.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from vramdoc.worker.values.calls import Call
from vramdoc.worker.values.context import Context
from vramdoc.worker.values.store import MAX_ELEMENTS, TOKEN

Derived = list[tuple[torch.Tensor, torch.Tensor, frozenset[str]]]
"""Device tensor, its value, and the rules behind it."""

_MOST_EXPERTS = 1024
"""A choice among more is a choice of a token: no router has so many experts, and few vocabularies are smaller."""


def derive(context: Context, call: Call, results: list[torch.Tensor]) -> Derived:
    """What the rules say of the ``results`` of ``call``, some of whose inputs are unknown."""
    handler = _HANDLERS.get(call.operator.name)
    return handler(context, call, results) if handler is not None else []


def tests_for_end(context: Context, call: Call) -> bool:
    """Whether ``call`` compares generated tokens with others: the rule, not what was drawn, decides."""
    if call.operator.name not in ("aten.eq", "aten.ne", "aten.isin"):
        return False
    known = [context.store.read(tensor) for tensor in call.tensors()]
    return any(value is not None and TOKEN in value.rules for value in known)


def _filled(results: list[torch.Tensor], value: float, *rules: str) -> Derived:
    """``value`` everywhere in every result that is not too large to be kept."""
    return [
        (result, torch.tensor(value).to(result.dtype).expand(result.shape), frozenset(rules))
        for result in results
        if result.numel() <= MAX_ELEMENTS
    ]


def _all(context: Context, _call: Call, results: list[torch.Tensor]) -> Derived:
    return _filled(results, context.choice("all") == "true", "all")


def _any(context: Context, _call: Call, results: list[torch.Tensor]) -> Derived:
    return _filled(results, context.choice("any") == "true", "any")


def _is_nonfinite(context: Context, _call: Call, results: list[torch.Tensor]) -> Derived:
    return _filled(results, context.choice("finite") == "nonfinite", "finite")


def _compare(context: Context, call: Call, results: list[torch.Tensor]) -> Derived:
    """The comparisons that ask whether a number is finite (x == x, |x| != inf), or whether a token is the last."""
    left, right = call.argument(0, "self"), call.argument(1, "other")
    name = call.operator.name.removeprefix("aten.")
    if tests_for_end(context, call):
        is_end = context.choice("end_of_sequence") == "at_once"
        return _filled(results, is_end == (name == "eq"), "end_of_sequence")
    finite = context.choice("finite") == "finite"
    if left is right and name in ("eq", "ne"):
        return _filled(results, finite == (name == "eq"), "finite")
    if isinstance(right, float) and math.isinf(right) and name in _BELOW_INFINITY:
        below = _BELOW_INFINITY[name] if right > 0 else _ABOVE_MINUS_INFINITY[name]
        return _filled(results, below if finite else not below, "finite")
    return []


_BELOW_INFINITY = {"eq": False, "ne": True, "lt": True, "le": True, "gt": False, "ge": False}
"""What a finite number answers when compared with infinity, by operator."""

_ABOVE_MINUS_INFINITY = {"eq": False, "ne": True, "lt": False, "le": False, "gt": True, "ge": True}
"""What a finite number answers when compared with minus infinity."""


def _is_in(context: Context, call: Call, results: list[torch.Tensor]) -> Derived:
    found = context.choice("end_of_sequence") == "at_once"
    return _filled(results, found != bool(call.kwargs.get("invert")), "end_of_sequence")


def _choose(context: Context, call: Call, results: list[torch.Tensor]) -> Derived:
    """Indices of the chosen entries of unknown scores: the last result of top-k, sort, argmax and their like."""
    name = call.operator.name.removeprefix("aten.")
    scores, chosen = call.args[0], results[-1]
    if len(results) != (1 if name.startswith("arg") else 2) or scores.dim() == 0:
        return []
    dim = _chosen_dim(name, call)
    if dim is None:
        return [(chosen, value.view(chosen.shape), rules) for value, rules in _take(context, (1,), scores.numel())]
    if chosen.dim() == scores.dim():
        rows = chosen.movedim(dim, -1).shape
        return [(chosen, value.movedim(-1, dim), rules) for value, rules in _take(context, rows, scores.shape[dim])]
    rows = torch.Size((*chosen.shape, 1))
    return [(chosen, value.squeeze(-1), rules) for value, rules in _take(context, rows, scores.shape[dim])]


def _chosen_dim(name: str, call: Call) -> int | None:
    """The dimension among whose entries is chosen; ``None`` for argmax over everything."""
    if name in ("argmax", "argmin"):
        dim = call.argument(1, "dim")
        return None if dim is None else int(dim)
    if name in ("topk", "kthvalue"):
        return int(call.argument(2, "dim", -1))
    # sort and argsort have overloads with ``stable`` first.
    by_place = next((value for value in call.args[1:] if type(value) is int), -1)
    return int(call.kwargs.get("dim", by_place))


def _take(context: Context, rows: Sequence[int], entries: int) -> list[tuple[torch.Tensor, frozenset[str]]]:
    """Indices below ``entries``, distinct in each of the ``rows`` (the last dimension), and their rule."""
    count, taken = math.prod(rows[:-1]), rows[-1]
    if count * taken > MAX_ELEMENTS or entries == 0:
        return []
    rules = {"routing"}
    if entries > _MOST_EXPERTS and taken == 1:
        # From the middle of the vocabulary: special tokens stand at its ends.
        first, rules = torch.arange(count) + entries // 2, {"end_of_sequence", TOKEN}
    elif context.choice("routing") == "balanced":
        first = torch.arange(count) * taken  # round robin: every entry is taken equally often
    else:
        first = torch.zeros(count, dtype=torch.int64)
    values = (first.unsqueeze(-1) + torch.arange(taken)) % entries
    return [(values.view(tuple(rows)), frozenset(rules))]


def _sample(context: Context, call: Call, results: list[torch.Tensor]) -> Derived:
    """Tokens drawn by unknown probabilities."""
    taken = _take(context, results[0].shape, call.args[0].shape[-1])
    return [(results[0], value, rules | {"end_of_sequence", TOKEN}) for value, rules in taken]


def _count(context: Context, call: Call, results: list[torch.Tensor]) -> Derived:
    """How many elements an unknown mask selects."""
    mask = call.args[0]
    if mask.dtype is not torch.bool or mask.numel() > MAX_ELEMENTS:
        return []
    known = context.selection(mask.shape)
    return [(results[0], call.func(known.value, *call.args[1:], **call.kwargs), known.rules)]


def _unscale(context: Context, call: Call, _results: list[torch.Tensor]) -> Derived:
    """The gradient scaler's check of all gradients, which sets ``found_inf``."""
    found = float(context.choice("finite") == "nonfinite")
    return _filled([call.args[1]], found, "finite")


_Handler = Callable[[Context, Call, list[torch.Tensor]], Derived]

_HANDLERS: dict[str, _Handler] = {
    "aten." + name: handler
    for handler, names in (
        (_all, ("all", "_is_all_true")),
        (_any, ("any", "_is_any_true")),
        (_is_nonfinite, ("isnan", "isinf", "isposinf", "isneginf")),
        (_compare, tuple(_BELOW_INFINITY)),
        (_is_in, ("isin",)),
        (_choose, ("topk", "sort", "argsort", "argmax", "argmin", "max", "min", "kthvalue", "median")),
        (_sample, ("multinomial",)),
        (_count, ("sum", "count_nonzero", "cumsum")),
        (_unscale, ("_amp_foreach_non_finite_check_and_unscale_",)),
    )
    for name in names
}

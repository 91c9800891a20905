"""Repeats an operator on the host, where every value that it takes is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from vramdoc.worker.nests import tensors_of
from vramdoc.worker.values.calls import Call, map_nest
from vramdoc.worker.values.context import Context
from vramdoc.worker.values.derive import derive, tests_for_end
from vramdoc.worker.values.store import MAX_ELEMENTS

_HOST_FAILURES = (RuntimeError, TypeError, IndexError, ValueError, ZeroDivisionError)
"""What an operator raises that the host lacks, or lacks for a type."""


class _UnknownError(Exception):
    """A value that the operator takes is not known."""


def run(context: Context, call: Call) -> Any:
    """Runs ``call`` on the device and keeps the store right; what it returns."""
    result = call.run()
    learn(context, call, result)
    return result


def learn(context: Context, call: Call, result: Any) -> None:
    """Brings the store up to date after ``call`` has returned ``result``."""
    if not call.operator.touches_values:
        return
    written = call.written()
    identities = {id(tensor) for tensor in written}
    results = [tensor for tensor in tensors_of(result) if id(tensor) not in identities]
    if not any(tensor.device.type == "cuda" for tensor in (*written, *results)):
        _follow_on_host(context, call, [*written, *results])
    elif call.operator.is_foreach:
        _learn_foreach(context, call, written, results)
    else:
        _learn_one(context, call, written, results)


def _learn_one(context: Context, call: Call, written: list[torch.Tensor], results: list[torch.Tensor]) -> None:
    store = context.store
    if not any(store.admits(tensor) for tensor in (*written, *results)):
        for tensor in written:
            store.forget(tensor)
        return
    if tests_for_end(context, call):
        derived = derive(context, call, results)
    else:
        try:
            values, rules = _repeat(context, call, written)
        except (_UnknownError, *_HOST_FAILURES):
            derived = derive(context, call, results)
        else:
            for tensor in written:
                store.mark(tensor, rules)
            derived = [(tensor, value, rules) for tensor, value in zip(results, values, strict=False)]
            written = []
    for tensor in written:
        store.forget(tensor)
    for tensor, value, rules in derived:
        store.put(tensor, value, rules)


def _repeat(context: Context, call: Call, written: list[torch.Tensor]) -> tuple[list[torch.Tensor], frozenset[str]]:
    """New values of ``call``'s results, and their rules; what it writes to is written in the store's memory."""
    rules: set[str] = set()
    identities = {id(tensor) for tensor in written}

    def on_host(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            is_written = id(leaf) in identities
            if is_written and (leaf.device.type == "cpu" or not context.store.admits(leaf)):
                raise _UnknownError
            if is_written and call.operator.writes_all:
                target = context.store.target(leaf)
                if target is None:
                    raise _UnknownError
                return target
            known = context.store.read(leaf)
            if known is None or known.value.numel() > MAX_ELEMENTS:
                raise _UnknownError
            rules.update(known.rules)
            return known.value
        if isinstance(leaf, torch.device):
            return torch.device("cpu")
        return None if isinstance(leaf, torch.Generator) else leaf

    args = map_nest(on_host, call.args)
    kwargs = {name: value for name, value in map_nest(on_host, call.kwargs).items() if name != "pin_memory"}
    function: Callable[..., Any] = _HOST_FORMS.get(call.operator.name, call.func)
    if not call.operator.is_random:
        values = function(*args, **kwargs)
    elif context.choice("random") == "drawn":
        rules.add("random")
        with context.drawing():
            values = function(*args, **kwargs)
    else:
        raise _UnknownError
    return [value for value in tensors_of(values) if not any(value is arg for arg in args)], frozenset(rules)


def _learn_foreach(context: Context, call: Call, written: list[torch.Tensor], results: list[torch.Tensor]) -> None:
    """Treats the tensors in the lists one by one: some are known, most are not."""
    count = len(call.args[0])
    known = [index for index in range(count) if _is_known_at(context, call, index)]
    kept = set(known)

    def pick(values: Any) -> Any:
        is_list = isinstance(values, (list, tuple)) and len(values) == count
        return [values[index] for index in known] if is_list else values

    if known:
        part = call.replace(*map(pick, call.args), **{name: pick(value) for name, value in call.kwargs.items()})
        _learn_one(context, part, part.written(), pick(results) if results else [])
    for tensor in (tensor for index, tensor in enumerate(written) if index not in kept):
        context.store.forget(tensor)


def _is_known_at(context: Context, call: Call, index: int) -> bool:
    lists = [value for value in call.args if isinstance(value, (list, tuple)) and len(value) > index]
    if call.operator.writes_all:
        if not context.store.admits(lists[0][index]):
            return False
        lists = lists[1:]
    return all(context.store.read(tensor) is not None for tensor in tensors_of([v[index : index + 1] for v in lists]))


def _follow_on_host(context: Context, call: Call, changed: list[torch.Tensor]) -> None:
    """Host tensors that came from the device keep their rules through operators on the host."""
    store = context.store
    if not store.has_inexact_host:
        return
    written = call.written() if call.operator.writes_all else []
    sources = [store.host_rules(t) for t in call.tensors() if not any(t is other for other in written)]
    rules = frozenset[str]().union(*(source for source in sources if source is not None))
    if any(source is None for source in sources):
        # A bulk copy was left as it came; only now is it clear that the program computes with it.
        is_move = call.operator.name in ("aten._to_copy", "aten.copy_", "aten.clone", "aten._pin_memory")
        if not is_move:
            rules |= {"finite"}
            context.note(call.operator.name, ["finite"])
        for tensor in changed:
            store.set_host_rules(tensor, None if is_move else rules)
        return
    for tensor in changed:
        store.set_host_rules(tensor, rules)


def _histc(values: torch.Tensor, bins: int = 100, minimum: float = 0, maximum: float = 0) -> torch.Tensor:
    return torch.histc(values.double(), bins, minimum, maximum).to(values.dtype)


_HOST_FORMS: dict[str, Callable[..., Any]] = {"aten.histc": _histc}
"""Operators that the host lacks for a type that the device has (histc: integers)."""

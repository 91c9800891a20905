"""Operators that hand device values to the program, or take a size from them.

Each handler answers from the shadow, or by a rule, and allocates on the device what CUDA would: it runs the real
operator for its temporaries, then makes the result in the size that the answer says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from vramdoc.worker.values.calls import Call, operator
from vramdoc.worker.values.context import Context
from vramdoc.worker.values.replay import learn, run
from vramdoc.worker.values.store import MAX_ELEMENTS, Known

_BULK_BYTES = 2**20
"""Copies to the host above this size are data on its way out or in store (offloading): they decide nothing yet."""

_MASK_TYPES = (torch.bool, torch.uint8)

_aten = torch.ops.aten


def _scalar(context: Context, call: Call) -> Any:
    tensor = call.args[0]
    call.run()
    return context.answer(call.operator.name, tensor).value.item()


def _equal(context: Context, call: Call) -> Any:
    call.run()
    known = [context.store.read(tensor) for tensor in call.tensors()]
    if all(value is not None for value in known):
        values = [value for value in known if value is not None]
        context.note(call.operator.name, frozenset[str]().union(*(value.rules for value in values)))
        return call.func(*(value.value for value in values), *call.args[len(values) :], **call.kwargs)
    context.note(call.operator.name, ["equal"])
    return context.choice("equal") == "true"


def _copy_to_host(context: Context, call: Call) -> Any:
    """``tensor.cpu()`` and ``host.copy_(tensor)``."""
    if call.operator.name == "aten.copy_":
        host, source = call.args[0], call.args[1]
        call.run()
    else:
        source = call.args[0]
        host = call.run()
    known = context.store.read(source)
    if known is None and source.numel() * source.element_size() > _BULK_BYTES:
        context.store.set_host_rules(host, None)
        return host
    is_stored = known is None and host.is_pinned()  # offloading: it comes back, or an operator on the host reads it
    known = known or context.constant(source)
    host.detach().copy_(known.value.expand(source.shape))
    context.store.set_host_rules(host, None if is_stored else known.rules)
    if not is_stored:
        context.note(call.operator.name, known.rules)
    return host


def _nonzero(context: Context, call: Call) -> Any:
    mask = call.args[0]
    known = context.answer(call.operator.name, mask, context.selection(mask.shape))
    return _positions(context, mask, known)


def _positions(context: Context, mask: torch.Tensor, known: Known) -> torch.Tensor:
    """What ``nonzero(mask)`` returns on the device where ``known`` is its value: int64, shape (count, dimensions).

    CUDA allocates it by dimension and hands out the transpose.
    """
    _aten.nonzero(mask)
    count = _count_nonzero(known.value)
    positions = torch.empty((mask.dim(), count), dtype=torch.int64, device=mask.device).t()
    if positions.numel() <= MAX_ELEMENTS:
        context.store.put(positions, known.value.nonzero(), known.rules)
    return positions


def _count_nonzero(value: torch.Tensor) -> int:
    """Of a view that may be expanded to a huge shape: repeated dimensions are counted once and multiplied."""
    repeats = 1
    for dim, (size, stride) in enumerate(zip(value.shape, value.stride(), strict=True)):
        if stride == 0 and size > 1:
            repeats *= size
            value = value.narrow(dim, 0, 1)
    return int(torch.count_nonzero(value)) * repeats


def _masked_select(context: Context, call: Call) -> Any:
    """CUDA's own way: an index by the mask, both expanded to one shape."""
    tensor, mask = torch.broadcast_tensors(call.args[0], call.args[1])
    func = _aten.index.Tensor
    return _index(context, Call(func, (tensor, [mask]), {}, operator(func)))


def _index(context: Context, call: Call) -> Any:
    indices = call.args[1]
    if not any(_is_device_mask(index) for index in indices):
        return run(context, call)
    name = call.operator.name
    positions = _expand(
        indices, lambda mask: _positions(context, mask, context.answer(name, mask, context.selection(mask.shape)))
    )
    return run(context, call.replace(call.args[0], positions, *call.args[2:], **call.kwargs))


def _index_put(context: Context, call: Call) -> Any:
    indices, values = call.args[1], call.args[2]
    accumulate = bool(call.argument(3, "accumulate", False))
    is_fill = values.numel() == 1 and values.device.type == "cpu" and not accumulate  # CUDA fills by the mask
    if is_fill or not any(_is_device_mask(index) for index in indices):
        return run(context, call)

    def answer(mask: torch.Tensor) -> torch.Tensor:
        known = context.store.read(mask)
        if known is None and values.dim() > 0 and values.shape[0] not in (1, mask.numel()):
            # The program itself says how many the mask selects: the values that go there.
            first = torch.arange(mask.numel()) < values.shape[0]
            known = Known(first.view(mask.shape), frozenset({"index"}))
            context.note(call.operator.name, known.rules)
        else:
            known = context.answer(call.operator.name, mask, context.selection(mask.shape))
        return _positions(context, mask, known)

    return run(context, call.replace(call.args[0], _expand(indices, answer), *call.args[2:], **call.kwargs))


def _is_device_mask(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype in _MASK_TYPES and index.device.type == "cuda"


def _expand(indices: Any, positions: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
    """``indices`` with every mask replaced by the positions that it selects, one tensor a dimension."""
    expanded: list[Any] = []
    for index in indices:
        expanded += positions(index).unbind(1) if _is_device_mask(index) else [index]
    return expanded


def _repeat_interleave(context: Context, call: Call) -> Any:
    """The form that takes only the repeats; the real one refuses what it reads here, so the size is passed to it."""
    if call.kwargs.get("output_size") is not None:
        return run(context, call)
    known = context.answer(call.operator.name, call.args[0])
    size = int(known.value.sum())
    result = call.func(call.args[0], output_size=size)
    if size <= MAX_ELEMENTS:
        context.store.put(result, call.func(known.value, output_size=size), known.rules)
    return result


def _unique(context: Context, call: Call) -> Any:
    """Every form of unique: values, inverse and counts, of which the program may ask for some."""
    tensor = call.args[0]
    call.run()
    stored = context.store.read(tensor)
    known = stored or Known(_distinct_values(context, tensor, call), frozenset({"distinct"}))
    context.note(call.operator.name, known.rules)
    host_results = call.func(known.value, *call.args[1:], **call.kwargs)
    results = [torch.empty_like(result, device=tensor.device) for result in host_results]
    for position, (result, value) in enumerate(zip(results, host_results, strict=True)):
        if stored is not None or position > 0:
            context.store.put(result, value, known.rules)
    return tuple(results)


def _distinct_values(context: Context, tensor: torch.Tensor, call: Call) -> torch.Tensor:
    """Stand-in values for ``tensor``: all distinct, or all alike, along the dimension that is asked for."""
    if context.choice("distinct") == "one":
        return torch.zeros(tensor.shape, dtype=tensor.dtype)
    dim = call.argument(3, "dim") if call.operator.name == "aten.unique_consecutive" else None
    dim = call.args[1] if call.operator.name == "aten.unique_dim" else dim
    if dim is None:
        return torch.arange(tensor.numel()).view(tensor.shape).to(tensor.dtype)
    steps = torch.arange(tensor.shape[dim]).to(tensor.dtype)
    return steps.view([-1 if axis == dim % tensor.dim() else 1 for axis in range(tensor.dim())]).expand(tensor.shape)


def _bincount(context: Context, call: Call) -> Any:
    call.run()
    known = context.answer(call.operator.name, call.args[0])
    weights = call.argument(1, "weights")
    known_weights = None if weights is None else context.store.read(weights)
    host_weights = None if weights is None else torch.zeros(weights.shape, dtype=weights.dtype)
    host_weights = known_weights.value if known_weights is not None else host_weights
    value = torch.bincount(known.value, host_weights, int(call.argument(2, "minlength", 0)))
    result = torch.empty(value.shape, dtype=value.dtype, device=call.args[0].device)
    if weights is None or known_weights is not None:
        rules = known.rules | (known_weights.rules if known_weights is not None else frozenset())
        context.store.put(result, value, rules)
    return result


def _coalesce(context: Context, call: Call) -> Any:
    """A sparse tensor (gradient of a sparse embedding) whose repeated indices are added up: how many are left?"""
    sparse = call.args[0]
    indices, values = sparse._indices(), sparse._values()
    call.run()
    known = context.store.read(indices)
    if known is None:
        left = indices.shape[1] if context.choice("distinct") == "all" else min(indices.shape[1], 1)
        known = Known(torch.arange(left).expand(indices.shape[0], left), frozenset({"distinct"}))
    context.note(call.operator.name, known.rules)
    host_indices = known.value.unique(dim=1)
    new_indices = torch.empty_like(host_indices, device=indices.device)
    context.store.put(new_indices, host_indices, known.rules)
    new_values = torch.empty((host_indices.shape[1], *values.shape[1:]), dtype=values.dtype, device=values.device)
    return torch.sparse_coo_tensor(new_indices, new_values, sparse.shape, check_invariants=False, is_coalesced=True)


def _check_errors(context: Context, call: Call) -> Any:
    """The check after a factorisation: what the device reports as zero means success."""
    if context.store.read(call.args[0]) is None:
        context.note(call.operator.name, ["finite"])
    return call.run()


def _suppress(context: Context, call: Call) -> Any:
    """Non-maximum suppression: boxes (n, 4) and scores (n); the indices of those kept."""
    call.run()
    boxes = [context.store.read(tensor) for tensor in call.tensors()]
    if all(known is not None for known in boxes):
        values = [known for known in boxes if known is not None]
        kept = call.func(*(known.value for known in values), *call.args[len(values) :])
        rules = frozenset[str]().union(*(known.rules for known in values))
    else:
        selection = context.selection(call.args[1].shape, "proposals")
        kept, rules = selection.value.nonzero().squeeze(1), selection.rules
    context.note(call.operator.name, rules)
    result = torch.empty(kept.shape, dtype=torch.int64, device=call.args[0].device)
    context.store.put(result, kept, rules)
    return result


def _lengths(context: Context, call: Call) -> Any:
    """Connectionist temporal classification with lengths on the device, which the operator itself reads."""
    overload = _WITH_HOST_LENGTHS[call.operator.name]
    first = 3 if call.operator.name == "aten._ctc_loss_backward" else 2
    lengths = [
        context.answer(call.operator.name, tensor).value.tolist() if isinstance(tensor, torch.Tensor) else tensor
        for tensor in call.args[first : first + 2]
    ]
    result = overload(*call.args[:first], *lengths, *call.args[first + 2 :], **call.kwargs)
    learn(context, call, result)
    return result


_WITH_HOST_LENGTHS: dict[str, Any] = {
    "aten._ctc_loss": _aten._ctc_loss.default,
    "aten._ctc_loss_backward": _aten._ctc_loss_backward.default,
    "aten._use_cudnn_ctc_loss": _aten._use_cudnn_ctc_loss.default,
    "aten._cudnn_ctc_loss": _aten._cudnn_ctc_loss.default,
}

Handler = Callable[[Context, Call], Any]

_HANDLERS: dict[str, Handler] = {
    "aten._local_scalar_dense": _scalar,
    "aten.equal": _equal,
    "aten.allclose": _equal,
    "aten.nonzero": _nonzero,
    "aten.masked_select": _masked_select,
    "aten.index": _index,
    "aten.index_put": _index_put,
    "aten.index_put_": _index_put,
    "aten._unsafe_index_put": _index_put,
    "aten._index_put_impl_": _index_put,
    "aten.repeat_interleave": _repeat_interleave,
    "aten._unique": _unique,
    "aten._unique2": _unique,
    "aten.unique_dim": _unique,
    "aten.unique_consecutive": _unique,
    "aten.bincount": _bincount,
    "aten._coalesce": _coalesce,
    "aten._linalg_check_errors": _check_errors,
    "torchvision.nms": _suppress,
    **dict.fromkeys(_WITH_HOST_LENGTHS, _lengths),
}


def handler_of(call: Call) -> Handler | None:
    """The handler of ``call``, if it reads a device value back."""
    if "out" in call.kwargs:
        return None
    handler = _HANDLERS.get(call.operator.name)
    if handler is not None:
        return handler if any(tensor.device.type == "cuda" for tensor in call.tensors()) else None
    if call.operator.name == "aten.copy_":
        is_read = call.args[0].device.type == "cpu" and call.args[1].device.type == "cuda"
        return _copy_to_host if is_read else None
    if call.operator.name == "aten._to_copy" and call.args[0].device.type == "cuda":
        device = call.kwargs.get("device")
        return _copy_to_host if device is not None and torch.device(device).type == "cpu" else None
    return None

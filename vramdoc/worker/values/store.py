"""Host copies of the values that small device tensors would hold.

A copy belongs to a *storage*, not to a tensor: views, aliases and detached tensors then share it by construction,
and a write through one of them is seen through all. A storage without a copy holds unknown values.

Storages are looked up by address. A Python object for a storage, once made, counts as a user of it for good, and
autograd adds gradients up in place only where there is a single user: so such objects are made only for storages
that get a copy, and gradients (floating-point results of a backward pass) get none.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

MAX_ELEMENTS = 2**22
"""Operations on more elements are not repeated on the host: about 10 ms each at this size."""

_MAX_INTEGER_BYTES = 2**25  # token ids, masks, edges: 4 Mi elements of int64
_MAX_FLOAT_BYTES = 2**17  # biases, weights of losses, frequencies, probabilities: 32 Ki elements of float32
_SWEEP_EVERY = 256  # new copies between two sweeps for storages that are gone

_PLAIN = torch._C._disabled_torch_dispatch_impl

EXACT: frozenset[str] = frozenset()
"""The rules behind a value that derives from host data alone: none."""


TOKEN = "token"
"""Beside the rules of a value: it holds generated tokens. Moves and arithmetic keep the mark, comparisons end it."""


class Known(NamedTuple):
    """A value on the host, and the names of the rules that it rests on."""

    value: torch.Tensor  # shares memory with the store: to be written only through ValueStore.target
    rules: frozenset[str]


class _Mirror:
    """The host copy of one device storage."""

    __slots__ = ("address", "bytes", "known", "life", "nbytes", "rules")

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self.life = StorageWeakRef(storage)  # while it lives, the storage's identity is not given to another
        self.address = storage.data_ptr()
        self.nbytes = storage.nbytes()
        self.bytes = torch.UntypedStorage(self.nbytes)
        self.known: torch.Tensor | None = torch.zeros(0, dtype=torch.bool)  # by byte; None: all; empty: none
        self.rules = EXACT

    def is_current(self, tensor: torch.Tensor) -> bool:
        """Whether ``tensor``'s storage still has its memory: resized, its contents are gone."""
        start = tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()
        return tensor.numel() == 0 or (start, tensor.untyped_storage().nbytes()) == (self.address, self.nbytes)


class ValueStore:
    """What is known of the values of device tensors, and which host tensors hold values that are not exact."""

    def __init__(self) -> None:
        self._mirrors: dict[int, _Mirror] = {}
        self._inexact_host: dict[int, tuple[StorageWeakRef, frozenset[str] | None]] = {}
        self._until_sweep = _SWEEP_EVERY

    def read(self, tensor: torch.Tensor) -> Known | None:
        """The value of ``tensor``, which may be on the host; ``None`` where any of its elements is unknown."""
        if tensor.device.type == "cpu":
            rules = self.host_rules(tensor)
            return None if rules is None else Known(tensor.detach(), rules)
        mirror = self._find(tensor)
        if mirror is None or not _all_known(mirror, tensor):
            return None
        return Known(_view(mirror.bytes, tensor), mirror.rules)

    def admits(self, tensor: torch.Tensor) -> bool:
        """Whether ``tensor`` is a plain device tensor that is small enough to be known, and no gradient."""
        if tensor.device.type != "cuda" or not _has_own_storage(tensor):
            return False
        if _is_floating(tensor) and torch._C._current_graph_task_id() != -1:
            return False
        return tensor.numel() <= MAX_ELEMENTS and tensor.numel() * tensor.element_size() <= _limit(tensor)

    def target(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The host view of the admitted ``tensor`` to write its new value to, before :meth:`mark`.

        ``None`` where it is a small part of a large storage.
        """
        mirror = self._find(tensor)
        if mirror is None:
            storage = tensor.untyped_storage()
            if storage.nbytes() > _limit(tensor):
                return None
            self._sweep()
            mirror = self._mirrors[storage._cdata] = _Mirror(storage)
        return _view(mirror.bytes, tensor)

    def mark(self, tensor: torch.Tensor, rules: frozenset[str]) -> None:
        """Says that the elements of ``tensor`` were written to its :meth:`target`."""
        mirror = self._find(tensor)
        rules = rules - {TOKEN} if tensor.dtype is torch.bool else rules
        if mirror is None:
            return
        if _covers(tensor, mirror.nbytes):
            mirror.known, mirror.rules = None, rules
            return
        mirror.rules |= rules
        if mirror.known is not None:
            if mirror.known.numel() == 0:
                mirror.known, mirror.rules = torch.zeros(mirror.nbytes, dtype=torch.bool), rules
            _bytes_of(mirror.known, tensor).fill_(True)

    def put(self, tensor: torch.Tensor, value: torch.Tensor, rules: frozenset[str]) -> None:
        """Makes ``value`` (same shape) the value of ``tensor``, if it is admitted."""
        if self.admits(tensor) and tensor.shape == value.shape:
            target = self.target(tensor)
            if target is not None:
                target.copy_(value)
                self.mark(tensor, rules)

    def forget(self, tensor: torch.Tensor) -> None:
        """Says that the elements of ``tensor`` hold unknown values from now on."""
        mirror = self._find(tensor)
        if mirror is None or (mirror.known is not None and mirror.known.numel() == 0):
            return
        if _covers(tensor, mirror.nbytes):
            del self._mirrors[_storage_address(tensor)]
            return
        if mirror.known is None:
            mirror.known = torch.ones(mirror.nbytes, dtype=torch.bool)
        _bytes_of(mirror.known, tensor).fill_(False)

    def host_rules(self, tensor: torch.Tensor) -> frozenset[str] | None:
        """The rules behind a host tensor's values; ``None`` where they came from the device unknown."""
        if not self._inexact_host or not _has_own_storage(tensor):
            return EXACT
        entry = self._inexact_host.get(_storage_address(tensor))
        return EXACT if entry is None else entry[1]

    def set_host_rules(self, tensor: torch.Tensor, rules: frozenset[str] | None) -> None:
        """Says what the values of a host tensor rest on (``None``: they are unknown)."""
        if not _has_own_storage(tensor):
            return
        storage = tensor.untyped_storage()
        if rules == EXACT:
            self._inexact_host.pop(storage._cdata, None)
        else:
            self._sweep()
            self._inexact_host[storage._cdata] = (StorageWeakRef(storage), rules)

    @property
    def has_inexact_host(self) -> bool:
        """Whether any host tensor holds values that are not exact."""
        return bool(self._inexact_host)

    def _find(self, tensor: torch.Tensor) -> _Mirror | None:
        if not _has_own_storage(tensor):
            return None
        address = _storage_address(tensor)
        mirror = self._mirrors.get(address)
        if mirror is not None and not mirror.is_current(tensor):
            del self._mirrors[address]
            return None
        return mirror

    def _sweep(self) -> None:
        self._until_sweep -= 1
        if self._until_sweep == 0:
            self._until_sweep = _SWEEP_EVERY
            self._mirrors = {key: kept for key, kept in self._mirrors.items() if not kept.life.expired()}
            self._inexact_host = {key: kept for key, kept in self._inexact_host.items() if not kept[0].expired()}


def _has_own_storage(tensor: torch.Tensor) -> bool:
    """False for sparse and nested layouts, and for wrappers such as DTensor."""
    return tensor.layout is torch.strided and type(tensor).__torch_dispatch__ is _PLAIN


def _storage_address(tensor: torch.Tensor) -> int:
    """The identity of ``tensor``'s storage, without making a Python object for it."""
    return int(torch._C._storage_address(tensor))  # type: ignore[attr-defined]


def _is_floating(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _limit(tensor: torch.Tensor) -> int:
    return _MAX_FLOAT_BYTES if _is_floating(tensor) else _MAX_INTEGER_BYTES


def _view(storage: torch.UntypedStorage, tensor: torch.Tensor) -> torch.Tensor:
    """``storage`` seen as ``tensor`` sees its own."""
    view = torch.empty(0, dtype=tensor.dtype)
    view.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())
    view = view.conj() if tensor.is_conj() else view
    return torch._neg_view(view) if tensor.is_neg() else view


def _bytes_of(known: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """The flags of the bytes that ``tensor`` covers, shape ``(*tensor.shape, itemsize)``."""
    size = tensor.element_size()
    stride = [step * size for step in tensor.stride()]
    return known.as_strided((*tensor.shape, size), (*stride, 1), tensor.storage_offset() * size)


def _all_known(mirror: _Mirror, tensor: torch.Tensor) -> bool:
    if mirror.known is None:
        return True
    if mirror.known.numel() == 0:
        return tensor.numel() == 0
    return bool(_bytes_of(mirror.known, tensor).all())


def _covers(tensor: torch.Tensor, nbytes: int) -> bool:
    """Whether ``tensor`` reaches every byte of its storage of ``nbytes``, each once."""
    if tensor.numel() * tensor.element_size() != nbytes:
        return False
    expected = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and step != expected:
            return False
        expected *= size
    return True

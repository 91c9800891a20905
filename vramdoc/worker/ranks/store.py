"""The rendezvous store of a rank that has no peers.

``torch.distributed`` uses its store for three things: to hand a key from one rank to the others (``get``
waits for it), to count who has come (``add``), and to wait. With a single process nobody else ever writes, so
a wait returns at once, a key that a peer would have set reads as zero bytes, and a count grows as if all ranks
had come together.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

from torch._C._distributed_c10d import Store

# ncclUniqueId, the one value that a rank reads from a peer's key, is this long; nobody looks at its content.
UNSET_VALUE = bytes(128)


class PeerlessStore(Store):
    """A store that one rank of ``world_size`` shares with nobody. Arguments of a ``TCPStore`` are accepted.

    The C++ side holds no reference to the Python object: whoever makes one must keep it for as long as a
    process group uses it.
    """

    def __init__(self, *_args: Any, size: int = 1, **_kwargs: Any) -> None:
        super().__init__()
        self._size = size
        self._values: dict[str, bytes] = {}

    def set(self, key: str, value: bytes | str) -> None:
        self._values[key] = _as_bytes(value)

    def get(self, key: str) -> bytes:
        """The value of ``key``; zero bytes where a peer would have set it."""
        return self._values.get(key, UNSET_VALUE)

    def add(self, key: str, amount: int) -> int:
        """Adds ``amount`` once for every rank, so that a program that counts arrivals sees all of them."""
        total = int(self._values.get(key, b"0")) + amount * self._size
        self._values[key] = str(total).encode()
        return total

    def compare_set(self, key: str, expected: bytes | str, desired: bytes | str) -> bytes:
        if self._values.get(key, b"") == _as_bytes(expected):
            self._values[key] = _as_bytes(desired)
        return self._values.get(key, _as_bytes(expected))

    def append(self, key: str, value: bytes | str) -> None:
        self._values[key] = self._values.get(key, b"") + _as_bytes(value)

    def check(self, keys: list[str]) -> bool:
        return all(key in self._values for key in keys)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Returns at once: there is nobody to wait for."""

    def delete_key(self, key: str) -> bool:
        return self._values.pop(key, None) is not None

    # Another store in front of this one (``PrefixStore``) calls these two by their C++ names.
    deleteKey = delete_key  # noqa: N815

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def multi_set(self, keys: list[str], values: list[bytes | str]) -> None:
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def num_keys(self) -> int:
        return len(self._values)

    getNumKeys = num_keys  # noqa: N815

    def has_extended_api(self) -> bool:
        return True

    def set_timeout(self, timeout: timedelta) -> None:
        """Nothing here takes time."""

    def clone(self) -> Self:
        """The same store: there is no connection to open twice."""
        return self


def _as_bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)

"""A rank's place, and the store and patches below it."""

from __future__ import annotations

import pytest

from vramdoc.errors import UsageError


@pytest.mark.parametrize(
    ("rank", "size", "local_size", "said"),
    [(0, 0, 1, "a world of 0 ranks"), (8, 8, 1, "rank 8 of a world of 8"), (-1, 2, 1, "rank -1"), (0, 6, 4, "6 ranks")],
)
def test_impossible_places_are_refused(rank: int, size: int, local_size: int, said: str) -> None:
    """A wrong rank would be measured as something else, or hang."""
    from vramdoc.worker.ranks import World

    with pytest.raises(UsageError, match=said) as raised:
        World(rank=rank, size=size, local_size=local_size)
    assert raised.value.hint


def test_environment_is_torchruns() -> None:
    """Scripts read these to choose device, node and data."""
    from vramdoc.worker.ranks import World

    environment = World(rank=13, size=16, local_size=8).environment()
    assert {name: environment[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")} == {
        "RANK": "13", "WORLD_SIZE": "16", "LOCAL_RANK": "5", "LOCAL_WORLD_SIZE": "8",
    }  # fmt: skip
    assert (environment["GROUP_RANK"], environment["GROUP_WORLD_SIZE"]) == ("1", "2")


def test_store_answers_through_torchs_prefixes() -> None:
    """torch puts prefix stores in front, whose C++ calls some methods by other names than Python does."""
    from torch.distributed import PrefixStore

    from vramdoc.worker.ranks.store import PeerlessStore

    kept = PeerlessStore(size=4)
    store = PrefixStore("prefix", kept)
    store.set("key", "value")
    store.append("key", "s")
    store.wait(["set by a peer"])
    assert store.get("key") == b"values"
    assert store.get("set by a peer") == bytes(128)
    assert (store.check(["key"]), store.check(["key", "other"])) == (True, False)
    assert [store.add("count", 1), store.add("count", 0), store.add("count", 2)] == [4, 4, 12]
    assert store.compare_set("fresh", "", "first") == b"first"
    assert store.compare_set("fresh", "else", "second") == b"first"
    assert store.compare_set("absent", "else", "second") == b"else"
    store.multi_set(["a", "b"], ["1", "2"])
    assert store.multi_get(["a", "b"]) == [b"1", b"2"]
    assert store.num_keys() == 5
    assert (store.delete_key("a"), store.delete_key("a")) == (True, False)
    assert kept.get("prefix/b") == b"2"

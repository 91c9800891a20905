"""Runs kept on disk: found again, never trusted when damaged, and keyed by all that they depend on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.advice_samples import measurement
from vramdoc.errors import MeasureError
from vramdoc.report.measurement import Choice, Request
from vramdoc.runner.cache import RunCache
from vramdoc.runner.fingerprint import fingerprint

REQUEST = Request(target="/there/model.py", null_gpu="a GPU", measures=(Choice(name="checkpoint"),))


def test_kept_and_found(tmp_path: Path) -> None:
    """What was measured comes back as it was, also from another process's cache, and for no other request."""
    found = measurement()
    RunCache(tmp_path / "cache", "state").put(REQUEST, found)
    again = RunCache(tmp_path / "cache", "state")
    assert again.get(REQUEST) == found
    assert again.get(replace(REQUEST, timeout=1.0)) == found, "how long it may take changes nothing"
    for other in (
        replace(REQUEST, batch_size=2),
        replace(REQUEST, measures=()),
        replace(REQUEST, null_gpu="another"),
        replace(REQUEST, measures=(Choice(name="checkpoint", options={"blocks": 3}),)),
    ):
        assert again.get(other) is None
    assert RunCache(tmp_path / "cache", "another state").get(REQUEST) is None


def test_a_measure_that_does_not_apply(tmp_path: Path) -> None:
    """Its reason is kept too, so that it need not be found again."""
    cache = RunCache(tmp_path, "state")
    cache.put(REQUEST, MeasureError("nothing repeats", hint="name it"))
    found = cache.get(REQUEST)
    assert isinstance(found, MeasureError)
    assert (found.message, found.hint) == ("nothing repeats", "name it")


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[]", b'{"measurement": 3}', b"{}"])
def test_damaged_entries_are_ignored(tmp_path: Path, damage: bytes) -> None:
    """A file that was cut short, or is another's, is as good as none."""
    cache = RunCache(tmp_path, "state")
    cache.put(REQUEST, measurement())
    (file,) = tmp_path.glob("*.json")
    file.write_bytes(damage)
    assert cache.get(REQUEST) is None


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    """No place to keep anything: runs are made again, and nothing fails."""
    (tmp_path / "file").write_text("")
    cache = RunCache(tmp_path / "file" / "cache", "state")
    cache.put(REQUEST, measurement())
    assert cache.get(REQUEST) is None
    cache.prune()


def test_fingerprint_follows_imports_and_named_files(tmp_path: Path) -> None:
    """A change of the target, of a module that it imports through others, or of a file that it names, is seen."""
    files = {
        "model.py": "from parts import block\nCONFIG = 'config.json'\n",
        "parts/__init__.py": "",
        "parts/block.py": "from . import norm\nfrom .deep.layer import Layer\n",
        "parts/norm.py": "EPSILON = 1e-5\n",
        "parts/deep/__init__.py": "",
        "parts/deep/layer.py": "Layer = 1\n",
        "config.json": "{}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "unrelated.py").write_text("")
    target = tmp_path / "model.py"
    before = fingerprint(target, {})
    assert fingerprint(target, {}) == before
    (tmp_path / "unrelated.py").write_text("X = 1\n")
    assert fingerprint(target, {"HOME": "/elsewhere"}) == before
    assert fingerprint(target, {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}) != before
    for name, text in files.items():
        (tmp_path / name).write_text(text + " ")
        assert fingerprint(target, {}) != before, name
        (tmp_path / name).write_text(text)

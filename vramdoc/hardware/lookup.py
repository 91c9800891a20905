"""Finds a GPU or a link by the name that a person would write."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cache

from vramdoc.errors import UnknownGpuError, UsageError
from vramdoc.hardware.model import Gpu, Link
from vramdoc.hardware.tables import all_gpus, all_links

_BRANDS = re.compile(r"nvidia|geforce|tesla|quadro")
_NEAREST = 3


def find(name: str) -> Gpu:
    """The GPU called ``name``: its short name, an alias, or CUDA's own name for it.

    Case, spaces and punctuation do not matter, nor do the brand names before it. A short name that leaves the
    form open (``a100``) stands for the SXM form, one that leaves the memory open for the larger. Where CUDA has
    one name for two sizes (RTX 4060 Ti) that is the larger one too.
    Raises :class:`UnknownGpuError`, whose hint names the nearest ones.
    """
    gpu = _by_name().get(_plain(name)) or _by_name().get(_without_brand(name))
    if gpu is None:
        raise UnknownGpuError(f"no GPU called {name!r} in the tables", hint=_hint(name))
    return gpu


def find_link(name: str) -> Link:
    """The link called ``name`` (``pcie-4-x16``); raises :class:`UsageError` for any other."""
    for link in all_links():
        if _plain(link.name) == _plain(name):
            return link
    nearest = difflib.get_close_matches(name, [link.name for link in all_links()], n=_NEAREST, cutoff=0.0)
    raise UsageError(f"no link called {name!r} in the tables", hint=f"the nearest: {', '.join(nearest)}")


def spellings(gpu: Gpu) -> Iterator[str]:
    """Every plain spelling that ``gpu`` is found by: lower case, letters and digits only."""
    for name in (gpu.name, gpu.short_name, *gpu.aliases):
        yield _plain(name)
        yield _without_brand(name)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _without_brand(name: str) -> str:
    return _BRANDS.sub("", _plain(name))


@cache
def _by_name() -> dict[str, Gpu]:
    names: dict[str, Gpu] = {}
    for gpu in all_gpus():
        for spelling in spellings(gpu):
            names.setdefault(spelling, gpu)
    return names


def _hint(name: str) -> str:
    close = difflib.get_close_matches(_without_brand(name), _by_name(), n=4 * _NEAREST, cutoff=0.5)
    nearest = list(dict.fromkeys(_by_name()[spelling].short_name for spelling in close))[:_NEAREST]
    listing = "vramdoc gpus lists all"
    return f"did you mean {' or '.join(nearest)}? {listing}" if nearest else listing

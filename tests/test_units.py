"""Sizes as text."""

from __future__ import annotations

import pytest

from vramdoc.errors import UsageError
from vramdoc.units import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1024**2, "1.0 MiB"),
        (1536 * 1024, "1.5 MiB"),
        (1024**3, "1.00 GiB"),
        (-(1024**3), "-1.00 GiB"),
        (1024**3 - 1, "1,024.0 MiB"),
    ],
)
def test_format(size: int, text: str) -> None:
    """The largest binary unit that leaves at least one of it."""
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [("22GiB", 22 * 1024**3), ("512 mib", 512 * 1024**2), ("1.5GB", 1_500_000_000), ("1_000", 1000), ("7B", 7)],
)
def test_parse(text: str, size: int) -> None:
    """Binary and decimal units are told apart, case is not."""
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "22 GiBs", "-3MiB", "1e3"])
def test_nonsense_is_refused(text: str) -> None:
    """A size that means nothing is a usage error, never a number."""
    with pytest.raises(UsageError, match="not a size"):
        parse_bytes(text)

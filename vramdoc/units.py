"""The one place that turns bytes into text, and text into bytes."""

from __future__ import annotations

import re

from vramdoc.errors import UsageError

KIB = 1024
MIB = 1024**2
GIB = 1024**3
_FACTORS = {
    "": 1, "b": 1,
    "kib": KIB, "mib": MIB, "gib": GIB, "tib": 1024**4,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
}  # fmt: skip
_SIZE = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def format_bytes(size: int) -> str:
    """``size`` bytes in the largest binary unit that leaves at least 1, two decimals above KiB: ``1.50 GiB``."""
    magnitude = abs(size)
    for factor, unit in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if magnitude >= factor:
            return f"{size / factor:,.{0 if unit == 'KiB' else 2 if unit == 'GiB' else 1}f} {unit}"
    return f"{size} B"


def parse_bytes(text: str) -> int:
    """``"22GiB"``, ``"512 MiB"``, ``"1.5GB"`` or ``"1048576"`` in bytes; raises :class:`UsageError` otherwise."""
    match = _SIZE.fullmatch(text)
    factor = _FACTORS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise UsageError(f"not a size: {text!r}", hint="write a number and a unit: 22GiB, 512MiB, 1.5GB, 4096B")
    return round(float(match[1].replace("_", "")) * factor)

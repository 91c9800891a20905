"""What a measurement found: frozen values and their versioned JSON. Imports no torch."""

from vramdoc.report.json import decode, encode
from vramdoc.report.model import (
    CATEGORIES,
    PHASES,
    SCHEMA_VERSION,
    Assumption,
    Attribution,
    Block,
    Device,
    Limited,
    LineRow,
    ModuleRow,
    Peak,
    Phase,
    Report,
    TimelinePoint,
    Values,
)

__all__ = [
    "CATEGORIES",
    "PHASES",
    "SCHEMA_VERSION",
    "Assumption",
    "Attribution",
    "Block",
    "Device",
    "Limited",
    "LineRow",
    "ModuleRow",
    "Peak",
    "Phase",
    "Report",
    "TimelinePoint",
    "Values",
    "decode",
    "encode",
]

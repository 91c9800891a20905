"""GPUs and links as data, with a source for every figure.

Totals are what CUDA reports under a Linux driver; they vary by some MiB from one driver to the next.
"""

from vramdoc.hardware.context import ESTIMATED_CONTEXT_BYTES, context_or_estimate
from vramdoc.hardware.describe import describe
from vramdoc.hardware.lookup import find, find_link
from vramdoc.hardware.model import DTYPES, Family, Gpu, Link
from vramdoc.hardware.tables import all_gpus, all_links

__all__ = [
    "DTYPES",
    "ESTIMATED_CONTEXT_BYTES",
    "Family",
    "Gpu",
    "Link",
    "all_gpus",
    "all_links",
    "context_or_estimate",
    "describe",
    "find",
    "find_link",
]

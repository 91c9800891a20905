"""GPUs and links as data, with a source for every figure."""

from vramdoc.hardware.lookup import find, find_link
from vramdoc.hardware.model import DTYPES, Family, Gpu, Link
from vramdoc.hardware.tables import all_gpus, all_links

__all__ = ["DTYPES", "Family", "Gpu", "Link", "all_gpus", "all_links", "find", "find_link"]

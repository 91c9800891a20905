"""Reads the model's constants: ``efficiencies.toml`` says what each one is and where it is from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Section = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiencies:
    """The sections of the file; keys are documented there."""

    products: Section
    tensor_cores: Section  # by architecture
    convolutions: Section
    attention: Section
    memory: Section
    launch: Section
    host: Section
    links: Section
    error: Section


@cache
def calibrated() -> Efficiencies:
    """The constants that the package ships."""
    table = tomllib.loads((Path(__file__).parent / "efficiencies.toml").read_text(encoding="utf-8"))
    tensor_cores = table["products"].pop("tensor_cores")
    return Efficiencies(tensor_cores=tensor_cores, **table)

"""What every renderer shares: the colours of the categories, their labels, and safe text."""

from __future__ import annotations

import re

from vramdoc.report.model import Category

# Middle tones that can be told apart on a light and on a dark ground.
CATEGORY_COLORS: dict[Category, str] = {
    "parameters": "#4a8fd9",
    "buffers": "#93b9e6",
    "optimizer_state": "#8f74d6",
    "gradients": "#2fa598",
    "activations": "#e0923c",
    "autocast_cache": "#cfae35",
    "inputs": "#7da453",
    "communication": "#c76cb2",
    "workspace": "#858b96",
    "temporaries": "#d7604b",
    "optimizer_temporaries": "#b04a68",
    "rounding": "#b3b8c1",
}
MODULE_PARTS = (
    ("params", "parameter_bytes"),
    ("grads", "gradient_bytes"),
    ("optimizer", "optimizer_state_bytes"),
    ("activations", "activation_bytes"),
    ("other", "other_bytes"),
)
"""Columns of the module table: head, and field of a :class:`vramdoc.report.ModuleRow`."""

_SITE_PACKAGES = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
GOOD = "#3f9b4f"
CAREFUL = "#bf8f1d"
BAD = "#d2483b"
OUTCOME_COLORS = {"fits": GOOD, "grows": CAREFUL, "squeezes": CAREFUL, "too_big": BAD}
OUTCOME_MARKS = {"fits": "✓", "grows": "!", "squeezes": "!", "too_big": "✗"}


def label(name: str) -> str:
    """A category's or a phase's name as text: ``optimizer state``."""
    return name.replace("_", " ")


def clean(text: str, *, ascii_only: bool = False) -> str:
    """``text`` on one line: every character that does not print as itself is written as its escape."""
    escaped = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
    return escaped.encode("ascii", "backslashreplace").decode() if ascii_only else escaped


def place(file: str, line: int) -> str:
    """``file:line``, or nothing where the file is not known; a library's file from its package on."""
    return f"{_SITE_PACKAGES.sub('', file)}:{line}" if file else ""


def percent(part: float) -> str:
    """A fraction as percent with one decimal; what is there but rounds to nothing is ``<0.1``."""
    return "<0.1 %" if 0 < part < 0.0005 else f"{100 * part:.1f} %"

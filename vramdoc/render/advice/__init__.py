"""Advice as text, in the formats of a profile."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from vramdoc.report.advice import AdviceReport, encode_advice

_RENDERERS = {
    ".txt": "vramdoc.render.advice.terminal",
    ".md": "vramdoc.render.advice.markdown",
    ".html": "vramdoc.render.advice.html",
    ".svg": "vramdoc.render.advice.svg",
}


def render_advice_as(report: AdviceReport, suffix: str) -> str:
    """``report`` in the format of one of :data:`vramdoc.render.SUFFIXES`."""
    if suffix == ".json":
        return encode_advice(report)
    renderer: Callable[[AdviceReport], str] = import_module(_RENDERERS[suffix]).render
    return renderer(report)

"""What checks found, in the formats of terminals and build systems: each a pure function of the result."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from vramdoc.report.findings import CheckResult

FORMATS = ("text", "json", "markdown", "github", "gitlab", "junit", "sarif")
"""The names that ``--output-format`` takes."""

_MODULES = {name: f"vramdoc.render.findings.{'as_json' if name == 'json' else name}" for name in FORMATS}


def render_result(result: CheckResult, form: str) -> str:
    """``result`` in one of :data:`FORMATS`; text is plain and 80 columns wide."""
    renderer: Callable[[CheckResult], str] = import_module(_MODULES[form]).render
    return renderer(result)

"""What a test is held to: its marks, nearest first, then the options and their ini twins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vramdoc.errors import UsageError
from vramdoc.gate import parse_limit, parse_metric
from vramdoc.hardware import Gpu, context_or_estimate, find
from vramdoc.report.testing import Terms
from vramdoc.runner.profile import DEFAULT_GPU
from vramdoc.units import parse_bytes

_KEYWORDS = {"limit_vram": {"limit", "gpu", "metric"}, "limit_growth": {"limit", "gpu"}}
_EXAMPLES = {
    "limit_vram": '@pytest.mark.limit_vram("8GiB", gpu="a100-40")',
    "limit_growth": '@pytest.mark.limit_growth("0B")',
}


def check_defaults(*, limit: str, gpu: str, metric: str) -> None:
    """Raises :class:`pytest.UsageError` where an option or an ini value makes no sense."""
    try:
        if limit:
            parse_limit(limit, where="--vram-limit")
        if gpu:
            find(gpu)
        if metric:
            parse_metric(metric, where="--vram-metric")
    except UsageError as error:
        raise pytest.UsageError(_sentence(error)) from None


def terms_of(item: pytest.Item, default: Callable[[str], str]) -> Terms:
    """The terms of ``item``; ``default`` gives an option by name, "" where it says nothing.

    Raises :class:`pytest.UsageError` that names the test.
    """
    try:
        said = _said(item, "limit_vram")
        growth = _said(item, "limit_growth")
        gpu = find(said.get("gpu") or growth.get("gpu") or default("gpu") or DEFAULT_GPU)
        limit = said.get("limit") or default("limit")
        if item.get_closest_marker("limit_vram") and not limit:
            raise UsageError("limit_vram says no limit", hint=f"write {_EXAMPLES['limit_vram']}, or give --vram-limit")
        if item.get_closest_marker("limit_growth") and not growth.get("limit"):
            raise UsageError("limit_growth says no limit", hint=f"write {_EXAMPLES['limit_growth']}")
        return Terms(
            gpu=gpu.short_name,
            metric=parse_metric(said.get("metric") or default("metric") or "allocated", where="limit_vram: metric"),
            context_bytes=context_or_estimate(gpu)[0],
            limit_bytes=_limit(limit, gpu) if limit else None,
            growth_limit_bytes=parse_bytes(growth["limit"]) if "limit" in growth else None,
        )
    except UsageError as error:
        raise pytest.UsageError(f"{item.nodeid}: {_sentence(error)}") from None


def _limit(text: str, gpu: Gpu) -> int:
    return parse_limit(text, where="limit_vram: limit").of(gpu.total_bytes)


def _said(item: pytest.Item, name: str) -> dict[str, str]:
    """The arguments of all marks called ``name``: a test's own win over its class's, those over its module's."""
    said: dict[str, str] = {}
    for mark in item.iter_markers(name):
        here: dict[str, str] = {**dict(zip(("limit",), mark.args, strict=False)), **mark.kwargs}
        strange = set(here) - _KEYWORDS[name]
        wrong = [key for key, value in here.items() if not isinstance(value, str)]
        if len(mark.args) > 1 or strange or wrong:
            reason = f"has no argument {min(strange)!r}" if strange else "takes one limit, and all arguments as text"
            raise UsageError(f"{name} {reason}", hint=f"write {_EXAMPLES[name]}")
        said = here | said
    return said


def _sentence(error: UsageError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message

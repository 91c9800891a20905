"""What people write: ``22GiB``, ``80%``, ``activations:200MiB``, ``module:blocks.*.mlp:3%``."""

from __future__ import annotations

import difflib
import re

from vramdoc.errors import UsageError
from vramdoc.gate.model import Amount, Kind, Tolerance
from vramdoc.report import CATEGORIES, PHASES
from vramdoc.report.findings import Metric
from vramdoc.units import parse_bytes

METRICS: tuple[Metric, ...] = ("allocated", "reserved", "device")
TOTALS = ("peak", *METRICS, "growth")
"""Figures of the whole step: ``peak`` is that of the check's own metric, ``growth`` the bytes a step leaves behind."""
_NAMES: dict[Kind, tuple[str, ...]] = {"total": TOTALS, "category": CATEGORIES, "phase": PHASES}
_KINDS: tuple[Kind, ...] = ("total", "category", "phase", "module")
_SHARE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")
_BARE_NUMBER = re.compile(r"\s*[0-9_.]+\s*")
_EXAMPLE = "write a size or a share: 22GiB, 512MiB, 80%"
_GRAMMAR = "write WHAT:AMOUNT, such as peak:3%, activations:200MiB, phase:backward:1GiB or module:blocks.*.mlp:5%"


def parse_limit(text: str, *, where: str = "budget") -> Amount:
    """``text`` as a budget: a size with its unit, or at most 100 % of a GPU. Raises :class:`UsageError`."""
    amount = _parse_amount(text, where)
    if amount.share is not None and amount.share > 1:
        raise UsageError(f"{where} {text!r} is more than the whole GPU", hint="a share is at most 100%")
    if not (amount.bytes or amount.share):
        raise UsageError(f"{where} {text!r} allows nothing at all", hint=_EXAMPLE)
    return amount


def parse_metric(text: str, *, where: str = "metric") -> Metric:
    """``text`` as a metric. Raises :class:`UsageError`."""
    for metric in METRICS:
        if text == metric:
            return metric
    raise UsageError(f"{where} {text!r} is not one of {', '.join(METRICS)}", hint=_nearest(text, METRICS))


def parse_tolerance(text: str) -> Tolerance:
    """``[KIND:]WHAT:AMOUNT`` as a tolerance. Raises :class:`UsageError`.

    WHAT is a total, a category, a phase or a module, looked up in this order; KIND before it says which is meant.
    """
    subject, colon, written = text.rpartition(":")
    if not colon or not subject.strip():
        raise UsageError(f"not a tolerance: {text!r}", hint=_GRAMMAR)
    kind, name = _subject(subject.strip(), text)
    amount = Amount(text="0", bytes=0) if written.strip() == "0" else _parse_amount(written, f"tolerance {text!r}:")
    return Tolerance(kind=kind, name=name, amount=amount)


def _subject(subject: str, text: str) -> tuple[Kind, str]:
    prefix, colon, name = subject.partition(":")
    if not colon:
        return next((kind for kind, names in _NAMES.items() if subject in names), "module"), subject
    for kind in _KINDS:
        if prefix == kind:
            known = _NAMES.get(kind)
            if known is not None and name not in known:
                raise UsageError(f"no {kind} is called {name!r} in {text!r}", hint=_nearest(name, known))
            return kind, name
    raise UsageError(f"unknown kind {prefix!r} in {text!r}", hint=_nearest(prefix, _KINDS))


def _parse_amount(text: str, where: str) -> Amount:
    plain = text.strip()
    share = _SHARE.fullmatch(text)
    if share:
        return Amount(text=plain, share=float(share[1]) / 100)
    if _BARE_NUMBER.fullmatch(text):
        raise UsageError(f"{where} {text!r} has no unit", hint=_EXAMPLE)
    try:
        return Amount(text=plain, bytes=parse_bytes(text))
    except UsageError:
        raise UsageError(f"{where} {text!r} is neither a size nor a share", hint=_EXAMPLE) from None


def _nearest(word: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]}?" if close else f"they are {', '.join(known)}"

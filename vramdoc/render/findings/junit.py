"""Checks as JUnit XML, in the form that Jenkins documents and others read: a test case for each check.

A broken budget is a ``failure``, a check that could not be made an ``error``.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from vramdoc.render.findings import sentences
from vramdoc.render.style import clean
from vramdoc.report.findings import Checked, CheckResult

_SUITE = "vramdoc"


def render(result: CheckResult) -> str:
    """The document."""
    counts = {
        "tests": str(len(result.checks)),
        "failures": str(sum(sentences.state(check) == "failed" for check in result.checks)),
        "errors": str(sum(sentences.state(check) == "fault" for check in result.checks)),
    }
    root = ET.Element("testsuites", {"name": _SUITE, **counts})
    suite = ET.SubElement(root, "testsuite", {"name": _SUITE, **counts, "skipped": "0"})
    for check in result.checks:
        _case(suite, check)
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="utf-8"?>\n', "\n")
    )


def _case(suite: ET.Element, check: Checked) -> None:
    case = ET.SubElement(suite, "testcase", {"classname": clean(check.target), "name": clean(check.name)})
    if check.fault is not None:
        told = "\n".join(filter(None, [check.fault.message, check.fault.traceback.rstrip(), check.fault.hint]))
        _outcome(case, "error", sentences.NOT_CHECKED, check.fault.message, told)
    elif check.findings:
        told = "\n\n".join(sentences.told(finding) for finding in check.findings)
        first = check.findings[0]
        _outcome(case, "failure", first.rule, sentences.broken(first), told)
    if check.fault is None:
        lines = [f"{sentences.subject(check)}: {sentences.headline(check)}", *check.warnings]
        ET.SubElement(case, "system-out").text = _lines("\n".join(lines))


def _outcome(case: ET.Element, kind: str, rule: str, message: str, told: str) -> None:
    outcome = ET.SubElement(case, kind, {"message": clean(message), "type": rule})
    outcome.text = _lines(told)


def _lines(text: str) -> str:
    """``text`` without the characters that XML forbids; only ends of lines stay."""
    return "\n".join(clean(line) for line in text.split("\n"))

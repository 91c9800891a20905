"""Checks as SARIF 2.1.0, for GitHub's code scanning and other collectors of findings.

A check that could not be made is no result but a notification of the tool, as the standard has it (3.20.21).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from vramdoc import __version__
from vramdoc.render.findings import sentences
from vramdoc.render.style import clean
from vramdoc.report.findings import Checked, CheckResult, Finding

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_NAMES = {"over-budget": "OverBudget", "increase": "Increase"}
_RULES = tuple(sentences.RULES)
_ESCAPES = {ord("\\"): "\\\\", ord("["): "\\[", ord("]"): "\\]", ord("{"): "{{", ord("}"): "}}"}


def render(result: CheckResult) -> str:
    """The log of one run."""
    run = {
        "tool": {
            "driver": {"name": "vramdoc", "semanticVersion": __version__, "rules": [_rule(rule) for rule in _RULES]}
        },
        "invocations": [_invocation(result)],
        "results": [_result(finding) for finding in result.findings],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _rule(rule: str) -> dict[str, Any]:
    return {
        "id": rule,
        "name": _NAMES[rule],
        "shortDescription": {"text": sentences.RULES[rule]},
        "defaultConfiguration": {"level": "error"},
    }


def _invocation(result: CheckResult) -> dict[str, Any]:
    faults = [_notification(check) for check in result.checks if check.fault is not None]
    return {
        "executionSuccessful": not faults,
        "exitCode": result.exit_code,
        **({"toolExecutionNotifications": faults} if faults else {}),
    }


def _notification(check: Checked) -> dict[str, Any]:
    assert check.fault is not None
    text = "\n".join(filter(None, [f"{check.name}: {check.fault.message}", check.fault.hint]))
    return {"level": "error", "message": _message(text), "locations": [_location(check.target, 1)]}


def _result(finding: Finding) -> dict[str, Any]:
    return {
        "ruleId": finding.rule,
        "ruleIndex": _RULES.index(finding.rule),
        "level": "error",
        "message": _message(sentences.told(finding)),
        "locations": [_location(finding.file, finding.file_line)],
        "partialFingerprints": {
            "vramdocFinding/v1": sentences.fingerprint(finding.rule, finding.check, finding.target, finding.subject)
        },
        "properties": {
            "measuredBytes": finding.measured_bytes,
            "allowedBytes": finding.allowed_bytes,
            "overBytes": finding.over_bytes,
        },
    }


def _message(text: str) -> dict[str, str]:
    """``text`` as a message string: brackets would open a link (3.11.6), braces a placeholder (3.11.5)."""
    lines = [clean(line) for line in text.split("\n")]
    return {"text": "\n".join(lines).translate(_ESCAPES)}


def _location(path: str, line: int) -> dict[str, Any]:
    """A place in a file; an absolute path is a file of the machine, others lie below the root of the sources."""
    uri = quote(path.encode("utf-8", "backslashreplace"))
    artifact = {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}}}

"""Checks as a GitLab code quality report: a JSON array of issues, as GitLab documents it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from vramdoc.render.findings import sentences
from vramdoc.render.style import clean
from vramdoc.report.findings import Checked, CheckResult


def render(result: CheckResult) -> str:
    """The array, empty where all passed."""
    issues = [issue for check in result.checks for issue in _issues(check)]
    return msgspec.json.format(msgspec.json.encode(issues), indent=1).decode() + "\n"


def _issues(check: Checked) -> Iterator[dict[str, Any]]:
    if check.fault is not None:
        text = f"{check.name} could not be checked: {check.fault.message}"
        yield _issue(sentences.NOT_CHECKED, text, "blocker", check.target, 1, check.name, check.target)
    for finding in check.findings:
        identity = (finding.check, finding.target, finding.subject)
        yield _issue(finding.rule, sentences.told(finding), "major", finding.file, finding.file_line, *identity)


def _issue(rule: str, text: str, severity: str, path: str, line: int, *identity: str) -> dict[str, Any]:
    return {
        "description": "; ".join(clean(part) for part in text.split("\n")),
        "check_name": f"vramdoc/{rule}",
        "fingerprint": sentences.fingerprint(rule, *identity),
        "severity": severity,
        "location": {"path": clean(path), "lines": {"begin": line}},
    }

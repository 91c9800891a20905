"""Checks as workflow commands of GitHub Actions: each finding becomes an annotation at its line.

Escapes as actions/toolkit documents them for commands: ``%``, CR and LF in messages, ``:`` and ``,`` in properties too.
"""

from __future__ import annotations

from collections.abc import Iterator

from vramdoc.render.findings import sentences
from vramdoc.render.style import clean
from vramdoc.report.findings import Checked, CheckResult, Finding


def render(result: CheckResult) -> str:
    """One command a line, and a closing line for the log."""
    commands = [command for check in result.checks for command in _commands(check)]
    return "\n".join([*commands, f"vramdoc: {sentences.summary(result)}"]) + "\n"


def _commands(check: Checked) -> Iterator[str]:
    if check.fault is not None:
        text = "\n".join(filter(None, [check.fault.message, check.fault.hint]))
        yield _command("error", text, file=check.target, title=f"vramdoc could not check {check.name}")
    for finding in check.findings:
        yield _annotation(finding)
    for warning in check.warnings:
        yield _command("warning", f"{check.name}: {warning}", file=check.target, title="vramdoc")


def _annotation(finding: Finding) -> str:
    title = f"GPU memory: {finding.check}"
    return _command("error", sentences.told(finding), file=finding.file, line=str(finding.file_line), title=title)


def _command(name: str, message: str, **properties: str) -> str:
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {shown}::{_message(message)}"


def _message(text: str) -> str:
    return "%0A".join(clean(line).replace("%", "%25") for line in text.split("\n"))


def _property(text: str) -> str:
    return clean(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")

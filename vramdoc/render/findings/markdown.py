"""Checks as Markdown, for a pull request's comment or a job's summary."""

from __future__ import annotations

from collections.abc import Iterator

from vramdoc.render.findings import sentences
from vramdoc.render.markdown import code, escape
from vramdoc.report.findings import Checked, CheckResult, Finding
from vramdoc.units import format_bytes


def render(result: CheckResult) -> str:
    """A table of all checks, then what is to know of those that did not pass."""
    mark = sentences.MARKS["passed" if result.passed else "failed"]
    parts = [f"## {mark} GPU memory: {escape(sentences.summary(result))}", _table(result)]
    for check in result.checks:
        if not check.passed or check.warnings:
            parts += _section(check)
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(result: CheckResult) -> str:
    with_baseline = any(check.baseline_bytes is not None for check in result.checks)
    heads = ["", "check", "target", "GPU", "batch", "needs", "budget", *(["since baseline"] if with_baseline else [])]
    rule = ["---", "---", "---", "---", "---:", "---:", "---:", *(["---:"] if with_baseline else [])]
    lines = [heads, rule, *(_row(check, with_baseline=with_baseline) for check in result.checks)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(check: Checked, *, with_baseline: bool) -> list[str]:
    cells = [sentences.MARKS[sentences.state(check)], code(check.name), code(check.target)]
    if check.fault is not None:
        return [*cells, "", "", "not checked", "", *([""] if with_baseline else [])]
    measured = f"{format_bytes(check.measured_bytes)} {sentences.METRICS[check.metric]}"
    cells += [escape(check.device), str(check.batch_size), measured, escape(sentences.limit(check)) or "-"]
    if with_baseline:
        before = check.baseline_bytes
        cells.append(sentences.signed(check.measured_bytes - before) if before is not None else "-")
    return cells


def _section(check: Checked) -> Iterator[str]:
    yield f"### {escape(check.name)}"
    if check.fault is not None:
        yield f"Not checked: {escape(check.fault.message)}"
        if check.fault.traceback:
            yield "\n".join(f"    {line}" for line in _printable(check.fault.traceback))
        if check.fault.hint:
            yield f"Hint: {escape(check.fault.hint)}"
    for alike in sentences.together(check.findings):
        told = [sentences.broken(finding) for finding in alike]
        yield "  \n".join(f"**{escape(text[:1].upper() + text[1:])}**" for text in told)
        yield "\n".join(_details(alike[0]))
    if check.warnings:
        yield "\n".join(f"- Warning: {escape(text)}" for text in check.warnings)


def _details(finding: Finding) -> Iterator[str]:
    for heading, text in sentences.details(finding):
        yield f"- {heading.capitalize()}: {escape(text)}"
        if heading == "line" and finding.line is not None and finding.line.code:
            yield f"  {code(finding.line.code)}"


def _printable(text: str) -> list[str]:
    """The lines of ``text`` for an indented code block, in which nothing but the end of a line has a meaning."""
    return ["".join(c if c.isprintable() else repr(c)[1:-1] for c in line) for line in text.rstrip().splitlines()]

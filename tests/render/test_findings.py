"""Every output format of ``vramdoc check``: golden, valid, and safe against what users write."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import xmlschema

from tests.render.check_samples import fault, finding, golden, passed, result
from tests.report.samples import HOSTILE
from vramdoc import __version__
from vramdoc.render.findings import FORMATS, render_result, sentences
from vramdoc.render.findings.text import render as render_text
from vramdoc.report.findings import CheckResult, LineBlame

SCHEMAS = Path(__file__).parents[1] / "data" / "formats"
EVIL = f"{HOSTILE}\r\n::error::100%0A,a:b\t]]>\x00\ud800 {{x}} ../%2e"
COMMAND = re.compile(r"::(error|warning) (?:[a-z]+=[^,:\r\n]*)(?:,[a-z]+=[^,:\r\n]*)*::[^\r\n]*")


def validate(text: str, schema: str) -> Any:
    """The JSON in ``text``, which must be as the schema in tests/data/formats says."""
    document = json.loads(text)
    jsonschema.validate(document, json.loads((SCHEMAS / schema).read_text()))
    return document


@pytest.mark.parametrize("form", FORMATS)
def test_golden(form: str) -> None:
    """What a build system reads must not change by accident."""
    shown = render_result(result(), form)
    assert shown == golden(form).read_text().replace(
        '"semanticVersion": "0.1.0"', f'"semanticVersion": "{__version__}"'
    )


@pytest.mark.parametrize("text", ["", EVIL], ids=["plain", "hostile"])
@pytest.mark.parametrize("checks", ["all", "passed", "fault"])
def test_valid(text: str, checks: str) -> None:
    """Each format is what its published schema says, whatever the texts hold and whether there are findings."""
    given = {
        "all": result(text),
        "passed": CheckResult(checks=(passed(),)),
        "fault": CheckResult(checks=(fault(text),)),
    }
    shown = {form: render_result(given[checks], form) for form in FORMATS}
    validate(shown["sarif"], "sarif-2.1.0.json")
    validate(shown["gitlab"], "gitlab-code-quality.json")
    xmlschema.validate(shown["junit"], SCHEMAS / "junit.xsd")
    assert json.loads(shown["json"])["passed"] is (checks == "passed")
    for line in shown["github"].splitlines()[:-1]:
        assert COMMAND.fullmatch(line), line


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_text_stays_text(form: str) -> None:
    """No markup, no escape sequence and no second workflow command comes out of a name or a traceback."""
    shown = render_result(result(EVIL), form)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", shown)
    if form == "junit":
        assert "<script>" not in shown
    if form == "github":
        assert not re.search(r"^(?!::(error|warning) )::", shown, flags=re.MULTILINE)
    if form == "markdown":  # what is code is shown as it is
        assert "<script>" not in re.sub(r"``.*?``|^    .*$", "", shown, flags=re.MULTILINE)


def test_github_escapes() -> None:
    """As actions/toolkit reads them back: %25, %0A, and in properties %3A and %2C."""
    odd = CheckResult(checks=(replace(result().checks[0], findings=(finding("a%b,c:d"),), warnings=()),))
    annotation = render_result(odd, "github").splitlines()[0]
    head, _, message = annotation.removeprefix("::").partition("::")
    assert head == "error file=a%25b%2Cc%3Ad,line=29,title=GPU memory%3A a%25b%2Cc%3Ad"
    assert message.startswith(
        "a%25b,c:d: 17.00 GiB of reserved memory is 9.00 GiB over the budget of 8.00 GiB%0Apeak: "
    )


def test_junit_counts() -> None:
    """Over budget is a failure and a check that could not be made an error: a dashboard must tell them apart."""
    document = xmlschema.XMLSchema(SCHEMAS / "junit.xsd").to_dict(render_result(result(), "junit"))
    assert (document["@tests"], document["@failures"], document["@errors"]) == (3, 1, 1)
    cases = document["testsuite"][0]["testcase"]
    assert [set(case) & {"failure", "error"} for case in cases] == [{"failure"}, set(), {"error"}]


def test_sarif_faults_are_no_results() -> None:
    """A crash of the target must not open an alert that says over budget."""
    (run,) = validate(render_result(CheckResult(checks=(fault(),)), "sarif"), "sarif-2.1.0.json")["runs"]
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is False
    assert "no weights" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_sarif_messages_and_places() -> None:
    """Brackets and braces have a meaning in messages, and a path is a URI."""
    place = "models/a b#1.py"
    odd = finding(message="[see](docs) {0}", file=place)
    (run,) = validate(
        render_result(CheckResult(checks=(replace(result().checks[0], findings=(odd,)),)), "sarif"), "sarif-2.1.0.json"
    )["runs"]
    assert r"\[see\](docs) {{0}}" in run["results"][0]["message"]["text"]
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "models/a%20b%231.py", "uriBaseId": "%SRCROOT%"}


def test_fingerprints_follow_the_finding_not_its_figures() -> None:
    """A collector that sees the same broken budget with another size must not report it as new."""
    more = finding(measured_bytes=2**36, file_line=77, line=None)

    def prints(*findings: Any) -> list[str]:
        shown = CheckResult(checks=(replace(result().checks[0], findings=findings),))
        return [issue["fingerprint"] for issue in json.loads(render_result(shown, "gitlab"))]

    assert prints(finding()) == prints(more)
    assert len(set(prints(finding(), finding(subject="activations"), finding(check="other")))) == 3


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_keeps_to_its_width(width: int) -> None:
    """No line of the terminal's view is wrapped by the terminal."""
    long = finding(
        line=LineBlame(file="a/" * 40, line=3, function="f", code="x = y + " * 30, bytes=1, grown_bytes=None)
    )
    shown = CheckResult(checks=(replace(result().checks[0], findings=(long,)),))
    assert max(map(len, render_text(shown, width=width).splitlines())) <= width
    assert render_text(shown, width=width, ascii_only=True).isascii()


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ((passed(),), "1 check passed"),
        ((passed(), passed()), "2 checks passed"),
        ((result().checks[0],), "1 check failed"),
        ((result().checks[0], passed()), "1 of 2 checks failed"),
        ((fault(),), "1 check could not be made"),
        ((passed(), fault(), fault()), "2 of 3 checks could not be made"),
    ],
)
def test_summary(checks: Any, expected: str) -> None:
    """The last line of a log is what is read first."""
    assert sentences.summary(CheckResult(checks=checks)) == expected

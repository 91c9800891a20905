"""Reports as files: HTML, Markdown and SVG carry the same figures, and nothing of the report is read as code."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.report.samples import HOSTILE, assumed, every, gpt2, hostile, too_big
from vramdoc.errors import UsageError
from vramdoc.render import SUFFIXES, check_suffix, markdown, render_as
from vramdoc.report import Report, decode

EVERY = pytest.mark.parametrize("report", every().values(), ids=every().keys())
VISIBLE = HOSTILE.replace("\x1b", "\\x1b").replace("\n", "\\n")
VOID = {"meta", "br"}


class Page(HTMLParser):
    """The tags, attributes and text of a page; checks that the tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@EVERY
def test_html_is_whole_and_fetches_nothing(report: Report) -> None:
    """The page is opened from disk, in mail, in CI: no script, no address, tags that nest."""
    text = render_as(report, ".html")
    page = Page(text)
    assert set(page.tags).isdisjoint({"script", "link", "img", "iframe", "object", "embed", "a"})
    assert {name for name, _ in page.attributes}.isdisjoint({"src", "href", "onload", "onclick"})
    assert "url(" not in text
    assert "@import" not in text


def test_html_answers_with_the_same_figures() -> None:
    """The page says what the terminal says."""
    words = " ".join("".join(Page(render_as(gpt2(), ".html")).text).split())
    for figure in (
        "25.97 GiB to spare",
        "13.42 GiB needed",
        "9.19 GiB",
        "h.0 … h.11 (12\N{MULTIPLICATION SIGN})",
        "12.39 GiB",
    ):
        assert figure in words


def test_html_escapes_every_text() -> None:
    """A module named <script> is a name."""
    page = Page(render_as(hostile(), ".html"))
    assert "script" not in page.tags
    assert VISIBLE in page.text


def test_html_chart() -> None:
    """Stacked areas with titles, the peak, and the end of a GPU that is too small."""
    text = render_as(too_big(), ".html")
    assert text.count("<polygon") >= 5
    assert "<title>activations: up to 27.58 GiB</title>" in text
    assert "peak 37.18 GiB" in text
    assert "the GPU is full here" in text
    assert "the GPU is full here" not in render_as(gpt2(), ".html")


@EVERY
def test_svg_is_xml_and_fetches_nothing(report: Report) -> None:
    """The picture is shown inside READMEs, where a fetched font would not load."""
    text = render_as(report, ".svg")
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    assert "url(http" not in text
    assert "@font-face" not in text
    assert "<script" not in text


def test_svg_is_reproducible() -> None:
    """The same report gives the same file: a picture in a repository changes when its figures do."""
    assert render_as(gpt2(), ".svg") == render_as(gpt2(), ".svg")
    assert "25.97" in html.unescape(render_as(gpt2(), ".svg"))


def test_markdown_figures() -> None:
    """The verdict as a heading, tables with their rule, numbers set right."""
    text = render_as(gpt2(), ".md")
    assert text.startswith("## ✓ Fits NVIDIA A100-SXM4-40GB with 25.97 GiB to spare\n")
    assert "| activations | 9.19 GiB | 74.2 % |" in text
    assert "| **loss** | 12.39 GiB | 11.39 GiB |" in text
    assert "`h.0 … h.11` (12\N{MULTIPLICATION SIGN})" in text


@EVERY
def test_markdown_tables_keep_their_columns(report: Report) -> None:
    """A pipe or a line end in a name must not break a row."""
    columns = 0
    for line in render_as(report, ".md").splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        assert columns in (0, cells), line
        columns = cells


def test_markdown_escapes_every_text() -> None:
    """What looks like HTML, a link or emphasis is text; in code it is fenced by more backticks than it holds."""
    text = render_as(hostile(), ".md")
    outside_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<script" not in outside_code
    assert markdown.escape("[a](b) *c* `d` <e> & |") == r"\[a\](b) \*c\* \`d\` &lt;e&gt; &amp; \|"
    assert markdown.code("a`b``c") == "```a`b``c```"
    assert markdown.code("`") == "`` ` ``"
    assert markdown.code("") == ""


def test_markdown_assumptions() -> None:
    """What a figure rests on goes where the figure goes."""
    assert "| `routing` | `aten.nonzero` | 24 | `moe.py:31` |" in render_as(assumed(), ".md")


def test_json_is_the_report() -> None:
    """-o report.json is what every later command reads."""
    assert decode(render_as(gpt2(), ".json")) == gpt2()


def test_text_is_plain() -> None:
    """-o report.txt is the view of 80 columns, without escapes."""
    text = render_as(gpt2(), ".txt")
    assert "\x1b" not in text
    assert "25.97 GiB to spare" in text


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_suffix_decides(suffix: str) -> None:
    """The ending is the format, in any case."""
    assert check_suffix(Path(f"out/report{suffix.upper()}")) == suffix


@pytest.mark.parametrize("name", ["report", "report.pdf", ".html", "report.html.gz"])
def test_unknown_suffix(name: str) -> None:
    """One message that lists what there is."""
    with pytest.raises(UsageError, match="cannot tell the format") as caught:
        check_suffix(Path(name))
    assert ".svg" in caught.value.hint

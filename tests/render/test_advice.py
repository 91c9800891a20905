"""Advice in every format: the same figures, nothing of the report read as code, code that can be copied."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from rich.cells import cell_len

from tests.render.test_files import Page
from tests.report.advice_samples import CODE, LONG_LINE, advice, hostile, short
from tests.report.samples import HOSTILE
from vramdoc.errors import ReportError
from vramdoc.render.advice import render_advice_as, terminal
from vramdoc.report.advice import AdviceReport, decode_advice, encode_advice

REPORTS = {"advice": advice(), "short": short(), "hostile": hostile()}
EVERY = pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
VISIBLE = HOSTILE.replace("\x1b", "\\x1b").replace("\n", "\\n")


@EVERY
def test_json_round_trip(report: AdviceReport) -> None:
    """What is written is read back whole, and each figure names a run that is there."""
    assert decode_advice(encode_advice(report)) == report
    names = {run.id for run in report.runs}
    assert {effect.run for effect in report.effects} <= names
    assert {step.run for plan in report.plans for step in plan.steps} | {plan.run for plan in report.plans} <= names


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "advice"}', "[1]", "\udcff"])
def test_what_is_no_advice(text: str) -> None:
    """A file from outside is data: one clear error."""
    with pytest.raises(ReportError, match="old\\.json"):
        decode_advice(text.encode(errors="surrogateescape"), source="old.json")


@EVERY
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_terminal_keeps_its_width(report: AdviceReport, width: int) -> None:
    """No line is longer than the terminal, but for code, which is never cut."""
    lines = terminal.render(report, width=width).splitlines()
    code = {f"    {line}".rstrip() for plan in report.plans for line in plan.code.splitlines()}
    assert all(cell_len(line) <= width for line in lines if line not in code)
    assert f"    {LONG_LINE}" in lines or not any(plan.steps for plan in report.plans)


def test_terminal_says_it_all() -> None:
    """Verdict, savings, reasons, plans with steps and code, GPUs, proofs, and what to run next."""
    text = terminal.render(advice(), width=120)
    for told in (
        "Is it activations or parameters?",
        "Activations. 30.00 GiB of the peak",
        "Largest batch today: 12",
        "20.00 GiB",
        "1.20\N{MULTIPLICATION SIGN} (1.10 to 1.30)",
        "Only with your leave  --allow speed,bf16_autocast,training",
        "the peak is in the backward",
        "1  fastest that fits",
        "batch up to 17",
        "36.00 GiB → 35.00 GiB",
        "4 GPUs, ZeRO-3: slower than one GPU",
        "rank 3 20.00 GiB",
        "not shown: no float64",
        "123 runs, 20 of them kept from before",
    ):
        assert told in text, told
    assert all(f"    {line}".rstrip() in text.splitlines() for line in CODE.splitlines())


def test_nothing_fits() -> None:
    """What still fills the GPU, and which GPU or how many would do."""
    text = " ".join(terminal.render(short(), width=100).split())
    assert "No plan fits. The smallest still needs 45.00 GiB reserved, 9.00 GiB too much." in text
    assert "What still fills it: parameters 20.00 GiB, optimizer state 10.00 GiB." in text
    assert "It fits 4 of these GPUs (measured: run r3)." in text
    assert "NVIDIA H100 80GB HBM3" in text
    assert "Interrupted: the best so far." in text


def test_one_measure_and_one_plan() -> None:
    """--show prints what is to be known of one, and code that can be copied."""
    report = advice()
    shown = terminal.render_effect(report.effects[0], report, width=80)
    assert "Cost: one more forward." in shown
    assert "It may be slow." in shown
    assert shown.endswith("    return x\n")
    assert "Saves nothing here: the peak is in the backward." in terminal.render_effect(report.effects[2], report)
    assert f"    {LONG_LINE}\n" in terminal.render_plan(1, report, width=80)


@EVERY
def test_files(report: AdviceReport) -> None:
    """Pages nest, carry no script and keep the code's lines; pictures are XML; Markdown and text have the figures."""
    page = Page(render_advice_as(report, ".html"))
    assert not {"script", "iframe", "img", "link"} & set(page.tags)
    ElementTree.fromstring(render_advice_as(report, ".svg"))
    texts = ["".join(page.text), render_advice_as(report, ".md"), render_advice_as(report, ".txt")]
    for text in texts:
        assert "45.00 GiB" in text or "36.00 GiB" in text
        assert HOSTILE not in text
    assert report.target != HOSTILE or VISIBLE in texts[0]


def test_ascii() -> None:
    """A terminal without Unicode gets none."""
    assert terminal.render(advice(), ascii_only=True).isascii()

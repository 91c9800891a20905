"""The terminal view: what it answers, in which order, and that it survives any terminal and any text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from tests.report.samples import HOSTILE, assumed, every, gpt2, hostile, leaky, squeezed, too_big
from vramdoc.render import terminal
from vramdoc.report import CATEGORIES, Report

ANSI = re.compile(r"\x1b\[[0-9;]*m")
EVERY = pytest.mark.parametrize("report", every().values(), ids=every().keys())


def line_with(text: str, part: str) -> str:
    """The first line of ``text`` that holds ``part``, its spaces made single."""
    return next(" ".join(line.split()) for line in text.splitlines() if part in line)


def test_order_of_the_answers() -> None:
    """Fits? What? When? Where? Sure? Next? -- a reader finds them in this order on every report."""
    text = terminal.render(gpt2(), width=80)
    answers = ["Fits NVIDIA", "What fills", "When", "by module", "by line", "Largest", "growth", "Exact", "Next"]
    places = [text.index(answer) for answer in answers]
    assert places == sorted(places)


def test_verdict_in_figures() -> None:
    """Spare, need, and its parts: 12.39 GiB and what lies beside it, of 39.39."""
    text = terminal.render(gpt2(), width=80)
    assert "✓ Fits NVIDIA A100-SXM4-40GB with 25.97 GiB to spare" in text
    assert "predicted on a null GPU, torch 2.14.1+cu130, CUDA 13.0" in text
    assert "13.42 GiB needed = 12.39 GiB allocated + 611.0 MiB cached + 443.0 MiB context" in text
    assert "34.1 % of 39.39 GiB" in text


def test_categories_largest_first_rounding_last() -> None:
    """Bars with bytes and share; what is not there takes no line."""
    text = terminal.render(gpt2(), width=80)
    names = re.findall(r"^ *■ ([a-z_ ]+?)  +[\d.]+ [KMG]iB +<?[\d.]+ %", text, re.MULTILINE)
    assert names[:2] == ["activations", "temporaries"]
    assert names[-1] == "rounding"
    assert set(names).isdisjoint({"gradients", "communication", "optimizer temporaries"})
    assert line_with(text, "■ activations").startswith("■ activations 9.19 GiB 74.2 % ███")


def test_tables() -> None:
    """Phases, folded modules, lines with their code, blocks with what made them."""
    text = terminal.render(gpt2(), width=124)
    assert line_with(text, "  loss  ").startswith("loss 12.39 GiB 11.39 GiB the peak")
    block = "h.0 … h.11 (12\N{MULTIPLICATION SIGN}) Block 324.5 MiB 648.9 MiB 8.37 GiB 249.5 MiB 9.56 GiB"
    assert line_with(text, "h.0") == block
    attention = line_with(text, "gpt2.py:41")
    assert attention.startswith("2.91 GiB 23.4 % 24 sample_models/gpt2.py:41 y = F.scaled_dot_product")
    assert "torch/optim/adamw.py:91" in text
    assert "site-packages" not in text
    assert line_with(text, "_log_softmax") == "1.53 GiB ■ temporaries _log_softmax sample_models/gpt2.py:96"


def test_what_does_not_fit() -> None:
    """How much is short, what the limit does, what torch says, and where the chart passes the GPU's end."""
    text = " ".join(terminal.render(too_big(), width=80).split())
    assert "✗ Does not fit NVIDIA GeForce RTX 4090: 15.88 GiB short" in text
    assert "runs out in loss, after 1 retry. torch says: CUDA out of memory. Tried to allocate 6.13 GiB." in text
    assert "GPU full" in text


def test_what_squeezes_in() -> None:
    """It completes, and the price is told."""
    text = " ".join(terminal.render(squeezed(), width=80).split())
    assert "! Squeezes into NVIDIA A100-SXM4-40GB: torch had to empty its cache 2 times" in text
    assert "completes after 2 retries, with 12.74 GiB reserved" in text


def test_leak_and_disagreement() -> None:
    """A leak is part of the verdict; passes that disagree and the run's own warnings are told."""
    text = " ".join(terminal.render(leaky(), width=100).split())
    assert "! Fits NVIDIA A100-SXM4-40GB with 25.97 GiB to spare, but grows by 1.50 GiB every step" in text
    assert "such as a kept loss. The GPU is full after 17 more." in text
    assert "! The attributed pass peaked at 12.69 GiB, the plain one at 12.39 GiB" in text
    assert "! The peak still rose in the last step" in text
    assert "measured on this GPU, torch 2.14.1+cu130, CUDA 13.0, driver 580.65.06, 247.1 ms a step" in text


def test_assumptions_with_place_and_range() -> None:
    """Nothing assumed is hidden: rule, operation, place, and what the other choices would give."""
    text = terminal.render(assumed(), width=80)
    assert "! Rests on 2 assumptions" in text
    assert line_with(text, "moe.py:31") == "routing aten.nonzero 24 moe.py:31"
    assert "the allocated peak is 11.89 GiB to 15.39 GiB" in " ".join(text.split())
    assert "Exact" not in text


def test_unknown_and_estimated_context() -> None:
    """A context that was not measured on this GPU is never shown as if it were."""
    peak = gpt2().peak
    unknown = terminal.render(replace(gpt2(), peak=replace(peak, context_bytes=None)), width=130)
    assert "its size is not known" in unknown
    estimated = terminal.render(replace(gpt2(), peak=replace(peak, context_estimated=True)), width=100)
    assert "≈443.0 MiB context" in estimated


@EVERY
@pytest.mark.parametrize("width", [40, 60, 80, 100, 111, 112, 140, 300])
def test_no_line_is_wider_than_the_terminal(report: Report, width: int) -> None:
    """A line that wraps breaks every chart; below 60 columns the view keeps 60."""
    for line in terminal.render(report, width=width).splitlines():
        assert cell_len(line) <= max(width, 60)


@EVERY
def test_plain_text_carries_no_control_characters(report: Report) -> None:
    """In a file, a pipe or under NO_COLOR there are letters and line ends only, whatever the report holds."""
    text = terminal.render(report, width=80)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert not re.search(r" +$", text, re.MULTILINE)


@EVERY
@pytest.mark.parametrize("color", ["standard", "256", "truecolor"])
def test_colour_adds_only_colour(report: Report, color: terminal.ColorSystem) -> None:
    """Without its escapes the coloured view is the plain one: colour carries nothing alone."""
    colored = ANSI.sub("", terminal.render(report, width=80, color=color))
    assert re.sub(r" +$", "", colored, flags=re.MULTILINE) == terminal.render(report, width=80)


@EVERY
def test_ascii(report: Report) -> None:
    """A terminal that knows ASCII only gets ASCII only."""
    text = terminal.render(replace(report, target="modèle.py"), width=80, ascii_only=True)
    assert text.isascii()
    assert "mod\\xe8le.py" in text
    assert "######" in text


def test_hostile_text_is_shown_as_it_is() -> None:
    """Markup is not read, escapes and line ends are written out: a name cannot paint or forge a line."""
    text = terminal.render(hostile(), width=132, color="truecolor")
    shown = HOSTILE.replace("\x1b", "\\x1b").replace("\n", "\\n")
    assert f"! {shown}" in ANSI.sub("", text)
    assert HOSTILE not in text
    assert "\x1b[31m" not in text


def test_empty_report() -> None:
    """A target without modules, lines or a timeline still gets its verdict."""
    empty = replace(
        gpt2(),
        categories=dict.fromkeys(CATEGORIES, 0),
        peak=replace(gpt2().peak, allocated_bytes=0, reserved_bytes=0),
        phases=(),
        modules=(),
        lines=(),
        largest=(),
        timeline=(),
    )
    for width in (80, 120):
        text = terminal.render(empty, width=width)
        assert "Fits" in text
        assert "by module" not in text


def test_summary_line() -> None:
    """--quiet: the verdict alone."""
    assert terminal.summary_line(gpt2()) == "✓ Fits NVIDIA A100-SXM4-40GB with 25.97 GiB to spare\n"
    assert terminal.summary_line(gpt2(), ascii_only=True).startswith("+ Fits")
    assert terminal.summary_line(hostile()).count("\n") == 1

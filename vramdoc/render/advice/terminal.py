"""The terminal view of advice: what fills the peak, what each measure saves, plans with their code, more GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from vramdoc.render.advice import sentences
from vramdoc.render.advice.tables import effects, leave, proofs, useless, ways
from vramdoc.render.style import BAD, CAREFUL, CATEGORY_COLORS, GOOD
from vramdoc.render.terminal.canvas import INDENT, Canvas, ColorSystem, draw, view_canvas, widest
from vramdoc.render.terminal.peak import bars
from vramdoc.render.terminal.verdict import verdict
from vramdoc.report.advice import AdviceReport, Effect
from vramdoc.units import format_bytes

_CODE = CATEGORY_COLORS["parameters"]


def render(report: AdviceReport, *, width: int = 80, color: ColorSystem | None = None, ascii_only: bool = False) -> str:
    """The view in ``width`` columns; ``color`` is what the terminal can show, None for plain text."""
    canvas = view_canvas(width, ascii_only=ascii_only)
    return _drawn(_sections(report, canvas), canvas, color)


def render_effect(
    effect: Effect, report: AdviceReport, *, width: int = 80, color: ColorSystem | None = None, ascii_only: bool = False
) -> str:
    """One measure: what it does, what it saved here, and the code."""
    canvas = view_canvas(width, ascii_only=ascii_only)
    rows: list[RenderableType] = [canvas.title(effect.title, f"{effect.choice.name}, {effect.tier}")]
    rows.append(canvas.paragraph(effect.change[:1].upper() + effect.change[1:] + "."))
    rows.append(canvas.paragraph(f"Cost: {effect.cost}.", style="dim"))
    rows += [canvas.paragraph(risk[:1].upper() + risk[1:] + ".", mark="!", mark_style=CAREFUL) for risk in effect.risks]
    if effect.reason:
        rows.append(canvas.paragraph(f"Saves nothing here: {effect.reason}.", mark="✗", mark_style=BAD))
    if effect.reserved_bytes is not None:
        peak = report.base.peak.reserved_bytes
        change = f"{format_bytes(peak)} → {format_bytes(effect.reserved_bytes)} reserved"
        time = f", {sentences.interval(effect.time)} the time for a sample" if effect.time else ""
        mark, style = ("✓", GOOD) if not effect.reason else ("", "")
        rows.append(canvas.paragraph(change + time, mark=mark, mark_style=style))
    parts: list[Part] = [*rows]
    if effect.code:
        parts += [Text(), Code(effect.code)]
    return _drawn(parts, canvas, color)


def render_plan(
    number: int, report: AdviceReport, *, width: int = 80, color: ColorSystem | None = None, ascii_only: bool = False
) -> str:
    """One plan with its code."""
    canvas = view_canvas(width, ascii_only=ascii_only)
    return _drawn(_plan(report, number, canvas, with_code=True, told=set()), canvas, color)


def layout(report: AdviceReport, canvas: Canvas) -> RenderableType:
    """The whole view as one block, long lines of code folded."""
    parts = _sections(report, canvas)
    return Group(*(_folded(part, canvas) if isinstance(part, Code) else part for part in parts))


@dataclass(frozen=True, slots=True)
class Code:
    """Code to be copied: its lines go out as they are, whatever the width."""

    text: str

    def lines(self, canvas: Canvas) -> list[str]:
        """Indented, without control characters."""
        return [f"    {canvas.safe(line)}".rstrip() for line in self.text.strip().splitlines()]


Part = RenderableType | Code


def _drawn(parts: Sequence[Part], canvas: Canvas, color: ColorSystem | None) -> str:
    """``parts`` one below the other. rich would cut the lines of code at the width."""
    out: list[str] = []
    for is_code, group in groupby(parts, key=lambda part: isinstance(part, Code)):
        if is_code:
            out += [line + "\n" for part in group if isinstance(part, Code) for line in part.lines(canvas)]
        else:
            out.append(draw(Group(*(part for part in group if not isinstance(part, Code))), canvas, color))
    return "".join(out)


def _folded(part: Code, canvas: Canvas) -> RenderableType:
    return Text("\n".join(part.lines(canvas)), style=_CODE, overflow="fold")


def _sections(report: AdviceReport, canvas: Canvas) -> list[Part]:
    """All sections, one blank line between them; those that have nothing to say are left out."""
    sections: list[Sequence[Part | None]] = [
        [_verdict(report, canvas)],
        [bars(report.base, canvas)],
        [_question(report, canvas)],
        [effects(report, canvas)],
        [leave(report, canvas)],
        [useless(report, canvas)],
        _plans(report, canvas),
        [_shortage(report, canvas)],
        [ways(report, canvas)],
        [proofs(report, canvas)],
        [_notes(report, canvas)],
        [_next(report, canvas)],
    ]
    parts: list[Part] = []
    for section in sections:
        present = [part for part in section if part is not None]
        if present:
            parts += [*([Text()] if parts else []), *present]
    return parts


def _verdict(report: AdviceReport, canvas: Canvas) -> RenderableType:
    parts: list[RenderableType] = [verdict(report.base, canvas)]
    if told := sentences.budget(report):
        over = report.base.peak.reserved_bytes > report.room.allowed_bytes
        parts.append(canvas.paragraph(told, mark="✗" if over else "✓", mark_style=BAD if over else GOOD))
    return Group(*parts)


def _question(report: AdviceReport, canvas: Canvas) -> RenderableType:
    rows: list[RenderableType] = [
        canvas.title("Is it activations or parameters?"),
        canvas.paragraph(sentences.activations_or_parameters(report)),
    ]
    if told := sentences.largest_batch(report):
        rows.append(canvas.paragraph(told))
    return Group(*rows)


def _plans(report: AdviceReport, canvas: Canvas) -> list[Part]:
    """Every plan, the first with its code; what is to be heeded is told once."""
    if not report.plans:
        return []
    parts: list[Part] = [canvas.title("Plans", sentences.room(report))]
    told: set[str] = set()
    for number in range(1, len(report.plans) + 1):
        parts += _plan(report, number, canvas, with_code=number == 1, told=told)
        if number < len(report.plans):
            parts.append(Text())
    return parts


def _plan(report: AdviceReport, number: int, canvas: Canvas, *, with_code: bool, told: set[str]) -> list[Part]:
    """Its figures, its steps with the peak after each, and its code."""
    plan = report.plans[number - 1]
    title = Text(" " * INDENT + sentences.plan_title(number, plan), style=f"bold {GOOD if plan.fits else BAD}")
    rows: list[Part] = [title, canvas.paragraph(sentences.plan_figures(plan))]
    if not plan.steps:
        rows.append(canvas.paragraph("no change: as it is"))
    names = min(widest([canvas.safe(step.title) for step in plan.steps]), canvas.width - 35)
    peak = report.base.peak.reserved_bytes
    for step in plan.steps:
        name = Text(canvas.safe(step.title))
        name.truncate(names, overflow="ellipsis", pad=True)
        line = Text.assemble(" " * INDENT, "+ ", name, "  ")
        if step.reserved_bytes is not None:
            change = f"{format_bytes(peak):>9} → {format_bytes(step.reserved_bytes):>9}"
            line.append(f"{change}  {sentences.ratio(step.time):>6}", style="dim")
            peak = step.reserved_bytes
        rows.append(line)
    notes = [note for note in plan.notes if note not in told]
    told.update(notes)
    rows += [canvas.paragraph(note[:1].upper() + note[1:], mark="!", mark_style=CAREFUL) for note in notes]
    if with_code and plan.steps:
        rows += [canvas.paragraph("Append this to the target's file:", style="dim"), Code(plan.code)]
    return rows


def _shortage(report: AdviceReport, canvas: Canvas) -> RenderableType | None:
    told = list(sentences.shortage(report))
    if not told:
        return None
    first, *rest = told
    return Group(canvas.paragraph(first, mark="✗", mark_style=BAD), *(canvas.paragraph(line) for line in rest))


def _notes(report: AdviceReport, canvas: Canvas) -> RenderableType:
    rows: list[RenderableType] = [canvas.paragraph(text) for text in sentences.real_times(report)]
    warnings = dict.fromkeys((*report.notes, *report.base.warnings))
    rows += [canvas.paragraph(text[:1].upper() + text[1:], mark="!", mark_style=CAREFUL) for text in warnings]
    mark = ("!", CAREFUL) if report.interrupted else ("✓", GOOD)
    rows.append(canvas.paragraph(sentences.work(report), mark=mark[0], mark_style=mark[1]))
    return Group(*rows)


def _next(report: AdviceReport, canvas: Canvas) -> RenderableType:
    rows: list[RenderableType] = [canvas.title("Next")]
    steps = sentences.next_steps(report)
    commands = widest([canvas.safe(command) for command, _ in steps])
    beside = INDENT + commands + 2 + widest([reason for _, reason in steps]) <= canvas.width
    for command, why in steps:
        if beside:
            rows.append(Text(" " * INDENT + f"{canvas.safe(command):<{commands}}  ").append(why, style="dim"))
        else:
            rows += [canvas.paragraph(why, style="dim"), canvas.paragraph(command)]
    return Group(*rows)

"""The tables of the terminal view: measures alone, those that save nothing, strategies over GPUs, proofs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vramdoc.render.advice import sentences
from vramdoc.render.style import BAD, CAREFUL, GOOD
from vramdoc.render.terminal.canvas import INDENT, Canvas, Column, widest
from vramdoc.report.advice import AdviceReport, Effect, Way
from vramdoc.units import format_bytes

_WIDE = 100
_SIZE = 9
_TIERS = {"free": GOOD, "numerics": CAREFUL, "training": CAREFUL}


def effects(report: AdviceReport, canvas: Canvas) -> RenderableType | None:
    """What saves, and may be taken."""
    shown = sentences.saving(report.effects, allowed=True)
    if not shown:
        return None
    return Group(canvas.title("Each measure alone", sentences.before(report)), _effects(shown, canvas))


def leave(report: AdviceReport, canvas: Canvas) -> RenderableType | None:
    """What would save too, but changes more than the user has allowed."""
    shown = sentences.saving(report.effects, allowed=False)
    if not shown:
        return None
    return Group(canvas.title("Only with your leave", sentences.leave(report)), _effects(shown, canvas))


def useless(report: AdviceReport, canvas: Canvas) -> RenderableType | None:
    """What saves nothing, each with the reason."""
    shown = sentences.useless(report.effects)
    if not shown:
        return None
    names = widest([effect.choice.name for effect in shown])
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=0)
    table.add_column(width=names, no_wrap=True)
    table.add_column(width=canvas.width - names - INDENT - 2, overflow="fold")
    for effect in shown:
        table.add_row("", Text(effect.choice.name), Text(canvas.safe(effect.reason), style="dim"))
    return Group(canvas.title("Saves nothing here"), table)


def ways(report: AdviceReport, canvas: Canvas) -> RenderableType | None:
    """Strategies over several GPUs, and what is to be said of each."""
    if not report.ways:
        return None
    links = ", ".join(dict.fromkeys(way.link for way in report.ways))
    good = [way for way in report.ways if way.ranks]
    columns = (
        Column(head="GPUs", number=True, width=4),
        Column(head="strategy", ratio=1),
        Column(head="peak", number=True, width=_SIZE),
        Column(head="sends", number=True, width=_SIZE),
        Column(head="waits", number=True, width=_SIZE),
        Column(head="speed", number=True, width=6),
    )
    parts: list[RenderableType] = [
        canvas.title(f"On up to {report.gpus} GPUs", f"reserved peak and sent bytes of a rank, link {links}"),
        canvas.table(columns, [_way_row(way, canvas) for way in good]),
    ]
    warned = {f"{way.gpus} GPUs, {way.title}: {way.warning}." for way in good if way.warning}
    for told in sentences.way_notes(report):
        mark, style = ("!", "") if told in warned else ("", "dim")
        parts.append(canvas.paragraph(told, style, mark=mark, mark_style=CAREFUL))
    return Group(*parts)


def proofs(report: AdviceReport, canvas: Canvas) -> RenderableType | None:
    """Whether gradients stay the same."""
    if not report.proofs:
        return None
    names = widest([proof.name for proof in report.proofs])
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=0)
    table.add_column(width=names, no_wrap=True)
    table.add_column(width=canvas.width - names - INDENT - 2, overflow="fold")
    for proof in report.proofs:
        style = "dim" if proof.largest_difference is None else ""
        table.add_row("", Text(proof.name), Text(canvas.safe(sentences.proof(proof)), style=style))
    return Group(canvas.title("Same gradients?", "largest difference with and without, on the host"), table)


def _effects(shown: Sequence[Effect], canvas: Canvas) -> RenderableType:
    wide = canvas.width >= _WIDE
    times = [sentences.interval(effect.time) if wide else sentences.ratio(effect.time) for effect in shown]
    columns = [
        Column(head="saves", number=True, width=_SIZE),
        Column(head="reserved", number=True, width=_SIZE),
        Column(head="allocated", number=True, width=_SIZE),
        Column(head="time", number=True, width=max(widest(times), 6)),
        Column(head="tier", width=8),
        Column(head="measure", ratio=1),
    ]
    rows = []
    for effect, time in zip(shown, times, strict=True):
        name = Text(canvas.safe(effect.choice.name))
        if wide:
            name.append(f"  {canvas.safe(effect.title)}", style="dim")
        rows.append(
            [
                Text(format_bytes(effect.saved_bytes), style="bold"),
                Text(format_bytes(effect.reserved_bytes or 0)),
                Text(format_bytes(effect.allocated_bytes or 0), style="dim"),
                Text(time),
                Text(effect.tier, style=_TIERS.get(effect.tier, "")),
                name,
            ]
        )
    return canvas.table(columns, rows)


def _way_row(way: Way, canvas: Canvas) -> list[Text | str]:
    return [
        Text(f"{way.gpus}"),
        Text(canvas.safe(way.title)),
        Text(sentences.way_peak(way), style=GOOD if way.fits else BAD),
        Text(format_bytes(way.communication_bytes), style="dim"),
        Text(sentences.seconds(way.exposed_seconds), style="dim"),
        Text(f"{way.speed:.2f}{sentences.TIMES}" if way.speed is not None else ""),
    ]

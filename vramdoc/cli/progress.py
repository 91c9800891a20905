"""The progress bar, on stderr, gone when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vramdoc.cli.output import color_system, is_ascii
from vramdoc.render.style import CATEGORY_COLORS

if TYPE_CHECKING:
    from vramdoc.runner.progress import Listener, Progress

_COLOR = CATEGORY_COLORS["parameters"]


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Listener | None]:
    """Gives a listener that draws what it hears; None where stderr is no terminal or the user wants quiet."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True, no_color=color_system(sys.stderr) is None, highlight=False)
    stage, count = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[count]}", markup=False)
    line = BarColumn(24, complete_style=_COLOR, finished_style=_COLOR, pulse_style=_COLOR)
    columns = (stage, count) if is_ascii(sys.stderr) else (stage, line, count, TimeElapsedColumn())
    # User code prints to the same terminal by itself, so there is nothing to redirect here.
    with Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task("starting", total=None, count="")

        def listen(news: Progress) -> None:
            count = f"{news.done} of {news.total}" if news.total else ""
            bar.update(task, description=news.stage, completed=news.done, total=news.total or None, count=count)

        yield listen

"""The progress bar, on stderr, gone when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vramdoc.cli.output import color_system, is_ascii

if TYPE_CHECKING:
    from vramdoc.runner.progress import Listener, Progress


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Listener | None]:
    """Gives a listener that draws what it hears; None where stderr is no terminal or the user wants quiet."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True, no_color=color_system(sys.stderr) is None, highlight=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    shown = columns[:1] + columns[3:] if is_ascii(sys.stderr) else columns
    # User code prints to the same terminal by itself, so there is nothing to redirect here.
    with Bar(*shown, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task("starting", total=None)

        def listen(news: Progress) -> None:
            bar.update(task, description=news.stage, completed=news.done, total=news.total or None)

        yield listen

"""Command line: a progress bar on a terminal, silence everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pointmend.denoising.algorithm import Progress


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """
    Show a bar on stderr while the block runs, and yield what has to be told of the progress.

    Parameters
    ----------
    quiet : show nothing, as when stderr is not a terminal; None is yielded then.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("loading the model", total=None)

        def tell(state: Progress) -> None:
            doing = f"step {state.step + 1} of {state.steps}" if state.done else "starting"
            if state.step >= state.steps:
                doing = "finishing"
            if state.regions > 1:
                doing = f"tile {state.region + 1} of {state.regions}, {doing}"
            completed = state.region * state.total + state.done
            total = state.regions * state.total
            bar.update(task, description=doing, completed=completed, total=total)

        yield tell

"""Command line: a progress bar on a terminal, silence everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from pointmend.cluster.run import Standing
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
    bar = _bar()
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


@contextmanager
def stage_bar(quiet: bool) -> Iterator[Callable[[Standing], None]]:
    """Show a bar on stderr for each stage of a run over many tiles; quiet as above."""
    if quiet or not sys.stderr.isatty():
        yield lambda standing: None
        return
    stage = ""
    with _bar() as bar:
        task = bar.add_task("starting", total=None)

        def tell(standing: Standing) -> None:
            nonlocal stage, task
            in_points = standing.all_points > 0
            completed = standing.points if in_points else standing.done
            total = standing.all_points if in_points else standing.total
            if standing.stage != stage:
                bar.remove_task(task)
                # What was done by an earlier run must not count as done in no time.
                stage, task = standing.stage, bar.add_task("", completed=completed, total=total)
            doing = f"{standing.stage}: {standing.done:,} of {standing.total:,}"
            if in_points:
                doing += " tiles"
            if standing.speed > 0.0:
                doing += f", {standing.speed:,.0f} points/s"
            bar.update(task, description=doing, completed=completed)

        yield tell


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )

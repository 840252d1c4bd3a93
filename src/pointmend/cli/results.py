"""Command line: what experiments show while they run, and when they are done."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pointmend.errors import InputError

if TYPE_CHECKING:
    from pointmend.evaluation.tables import Table
    from pointmend.experiments.bench import Findings
    from pointmend.experiments.grid import Tell


def data_folder(given: Path | None) -> Path:
    """The benchmark's folder: as given, or as the environment says."""
    named = given or (
        Path(os.environ["POINTMEND_DATA"]) if "POINTMEND_DATA" in os.environ else None
    )
    if named is None:
        raise InputError("the benchmark's folder is missing: give --data or set POINTMEND_DATA")
    if not named.is_dir():
        raise InputError(f"{named}: no such folder; name the one that holds the benchmark")
    return named


def show(findings: Findings, report: Path) -> None:
    """Print the tables, the notes, and where the report is."""
    from rich.console import Console

    # Wide tables must not lose their columns when nobody says how wide the paper is.
    console = Console(width=None if sys.stdout.isatty() else 240)
    for table in findings.tables:
        console.print(_rich(table))
        for note in table.notes:
            console.print(note, style="dim", markup=False)
    for note in findings.notes:
        console.print(note, markup=False)
    print(f"report: {report}")


def _rich(table: Table) -> object:
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(title=table.title, title_justify="left")
    labels = len(table.heads) - len(table.columns)
    for place, name in enumerate(table.heads):
        shown.add_column(name, justify="left" if place < labels else "right")
    for row, cells in zip(table.rows, table.cells()):
        style = "dim" if row.source == "paper" else ""
        shown.add_row(*(Text(cell) for cell in cells), style=style)
    return shown


@contextmanager
def cell_progress() -> Iterator[Tell]:
    """A bar over the cells on a terminal, silence everywhere else."""
    from pointmend.experiments.grid import silent

    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress, TimeRemainingColumn

    with Progress(
        *Progress.get_default_columns()[:-1],
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("starting", total=None)

        def tell(done: int, total: int, doing: str) -> None:
            bar.update(task, completed=done, total=total, description=doing)

        yield tell

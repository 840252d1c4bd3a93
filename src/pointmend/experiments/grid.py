"""Experiments: methods times cases, the loop behind every table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from pointmend.evaluation.cells import CellStore, Measurement
from pointmend.evaluation.noise import Pattern
from pointmend.evaluation.tables import Row
from pointmend.evaluation.testsets import TestSet
from pointmend.methods.method import Contestant

Tell = Callable[[int, int, str], None]
"""Called with cells done, cells in all, and what comes next."""


def silent(done: int, total: int, doing: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Column:
    """Clouds of one kind: a pattern and level of noise at a number of points."""

    points: int
    level: float
    pattern: Pattern = "gaussian"

    @property
    def name(self) -> str:
        """Points and noise the way tables head them: "10k 1 %"."""
        thousands = self.points / 1000
        return f"{thousands:g}k {100 * self.level:g} %"


Cells = Mapping[tuple[str, Column], Sequence[Measurement]]
"""What was measured by method and column, shape by shape."""


def hardest(columns: Sequence[Column]) -> Column:
    """The one with most noise, and of those the one with fewest points."""
    return max(columns, key=lambda column: (column.level, -column.points))


@dataclass(frozen=True)
class Grid:
    """
    Where and how cells are computed.

    Attributes
    ----------
    store : where they are kept.
    shapes : how many shapes of a set are taken (the first ones); None for all.
    tell : progress.
    """

    store: CellStore
    shapes: int | None = None
    tell: Tell = field(default=silent)

    def run(
        self, test_set: TestSet, contestants: Sequence[Contestant], columns: Sequence[Column]
    ) -> dict[tuple[str, Column], Measurement]:
        """The mean measurement of every method (by its name) in every column."""
        return means(self.measure(test_set, contestants, columns))

    def measure(
        self, test_set: TestSet, contestants: Sequence[Contestant], columns: Sequence[Column]
    ) -> dict[tuple[str, Column], list[Measurement]]:
        """
        What every method (by its name) reaches in every column, shape by shape.

        Case by case, all methods on one cloud before the next is read: an interrupted run has
        whole shapes, and the store makes the next run go on there.
        """
        names = test_set.shapes[: self.shapes]
        total = len(names) * len(columns) * len(contestants)
        done = 0
        found: dict[tuple[str, Column], list[Measurement]] = {}
        for column in columns:
            for shape in names:
                case = test_set.case(shape, column.points, column.level, column.pattern)
                for contestant in contestants:
                    self.tell(done, total, f"{contestant.name}, {column.name}, {shape}")
                    cell = self.store.measurement(contestant, case)
                    found.setdefault((contestant.name, column), []).append(cell)
                    done += 1
        self.tell(done, total, "done")
        return found


def means(found: Cells) -> dict[tuple[str, Column], Measurement]:
    """The mean over all shapes, by method and column."""
    return {key: mean(cells) for key, cells in found.items()}


def mean(cells: Sequence[Measurement]) -> Measurement:
    """The mean of every number."""
    names = [field.name for field in fields(Measurement)]
    return Measurement(**{n: float(np.mean([getattr(c, n) for c in cells])) for n in names})


def measured_rows(
    found: dict[tuple[str, Column], Measurement],
    contestants: Sequence[Contestant],
    columns: Sequence[Column],
    metrics: Sequence[str],
    group: str = "",
) -> list[Row]:
    """One row per method; a column's name is followed by the metric's."""
    rows = []
    for contestant in contestants:
        values = {
            head(column, metric): float(getattr(found[contestant.name, column], metric))
            for column in columns
            for metric in metrics
        }
        rows.append(Row(contestant.name, values, group=group))
    return rows


def head(column: Column, metric: str) -> str:
    """The name of a column of one metric, such as "10k 1 % CD"."""
    return f"{column.name} {METRIC_NAMES.get(metric, metric)}"


METRIC_NAMES = {"cd": "CD", "p2m": "P2M"}

"""Evaluation: the numbers the paper prints, to be shown beside ours."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

Column = tuple[int, float]
"""Points and noise level of a column."""


@cache
def published_rows(table: int) -> dict[tuple[str, str, str], dict[Column, float]]:
    """
    The rows of one of the paper's tables.

    Parameters
    ----------
    table : 1 to 4; 4 is the appendix's.

    Returns
    -------
    (group, method, metric) -> (points, level) -> value. The group is a test set (table 1: PUNet,
    PCNet, MODNet; tables 3 and 4: PUNet) or a noise pattern (table 2); the metric is "cd" (x 1e4)
    or "p2m" (x 1e5). The paper's own method is called "the paper" in tables 1 and 2, "Full" in 3
    and 4, as there.
    """
    text = files("pointmend.evaluation").joinpath("published.csv").read_text(encoding="utf-8")
    rows = {}
    for row in csv.DictReader(text.splitlines()):
        if int(row.pop("table")) != table:
            continue
        key = (row.pop("group"), row.pop("method"), row.pop("metric"))
        rows[key] = {_column(name): float(value) for name, value in row.items() if value}
    return rows


def published_value(table: int, group: str, method: str, metric: str, column: Column) -> float:
    """One number of a table; NaN where the paper prints none."""
    return published_rows(table).get((group, method, metric), {}).get(column, float("nan"))


def _column(name: str) -> Column:
    """(10000, 0.01) of "10000@0.01"."""
    points, level = name.split("@")
    return int(points), float(level)

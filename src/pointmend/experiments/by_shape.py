"""Experiments: what every single shape says, and pictures of the worst ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pointmend.evaluation.cells import Measurement
from pointmend.evaluation.tables import Table
from pointmend.evaluation.testsets import TestSet
from pointmend.methods.method import Contestant

from .bench import Findings, Workbench
from .grid import Cells, Column, hardest, measured_rows
from .paper_tables import heads
from .pictures import compare_methods

PICTURED = 3


def add_shapes(
    findings: Findings,
    bench: Workbench,
    test_set: TestSet,
    contestants: Sequence[Contestant],
    columns: Sequence[Column],
    metrics: Sequence[str],
    cells: Cells,
) -> None:
    """Add a table with all shapes, and a picture of those the last method is worst on."""
    shapes = test_set.shapes[: bench.grid.shapes]
    rows = []
    for number, shape in enumerate(shapes):
        found = {key: measured[number] for key, measured in cells.items()}
        rows += measured_rows(found, contestants, columns, metrics, shape)
    findings.tables.append(Table("Shape by shape", heads(columns, metrics), rows))
    last = contestants[-1].name
    worst = [shapes[n] for n in worst_first([cells[last, column] for column in columns])]
    findings.pictures.append(
        compare_methods(bench, test_set, worst[:PICTURED], contestants, hardest(columns))
    )


def worst_first(columns: Sequence[Sequence[Measurement]]) -> list[int]:
    """Shapes by P2M as a share of each column's mean, so that strong noise does not decide."""
    p2m = np.array([[cell.p2m for cell in column] for column in columns])
    shares = p2m / np.maximum(p2m.mean(axis=1, keepdims=True), np.finfo(float).tiny)
    return [int(n) for n in np.argsort(-shares.mean(axis=0), kind="stable")]

"""Experiments: comparisons as pictures, a line per shape, a column per method, one scale."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from pointmend.evaluation.sheets import Panel, column_scale, contact_sheet
from pointmend.evaluation.testsets import Case, TestSet
from pointmend.geometry.meshes import unit_sphere
from pointmend.geometry.triangles import points_to_mesh
from pointmend.methods.method import Contestant

from .bench import Picture, Workbench
from .grid import Column


def compare_methods(
    bench: Workbench,
    test_set: TestSet,
    shapes: Sequence[str],
    contestants: Sequence[Contestant],
    column: Column,
) -> Picture:
    """Points coloured by their distance to the true surface, as shares of the shape's radius."""
    cases = [test_set.case(shape, column.points, column.level, column.pattern) for shape in shapes]
    return compare_cases(bench, cases, contestants, f"{test_set.name}, {column.name}")


def compare_cases(
    bench: Workbench, cases: Sequence[Case], contestants: Sequence[Contestant], title: str
) -> Picture:
    """The same for any clouds; the file is named by the title."""
    rows = [[_panel(bench, case, contestant) for contestant in contestants] for case in cases]
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    path = bench.out / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    label = "distance to the true surface, % of the radius"
    # The noisy input is off any scale that tells the results apart: the middle column chooses it.
    scale = float(np.median([column_scale(rows, c) for c in range(len(contestants))]))
    titles = [contestant.name for contestant in contestants]
    contact_sheet(rows, titles, path, label=label, full_scale=scale)
    return Picture(title, path)


def _panel(bench: Workbench, case: Case, contestant: Contestant) -> Panel:
    found = bench.grid.store.measurement(contestant, case, keep=True)
    result = bench.grid.store.result(contestant, case)
    _, radius = unit_sphere(case.mesh.vertices)
    distance = 100.0 * np.sqrt(points_to_mesh(result, case.mesh).squared) / radius
    return Panel(result, distance, f"{case.shape}: P2M {found.p2m:.2f}")

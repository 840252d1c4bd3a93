"""Experiments: the paper's sweeps of the sampler's numbers, steps and fresh noise."""

from __future__ import annotations

from collections.abc import Sequence

from pointmend.evaluation.plots import Curve, line_plot
from pointmend.evaluation.tables import Row, Table
from pointmend.methods.method import Contestant
from pointmend.methods.registry import our_contestant

from .bench import Findings, Picture, Workbench
from .grid import Column, head, measured_rows
from .paper_tables import heads

ITERATIONS = (1, 2, 3, 4, 5, 6, 7, 8, 30)
ETAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def iterations(bench: Workbench) -> Findings:
    """P2M over the number of steps L = 1 ... 8, and 30."""
    tried = [our_contestant(bench.model, steps=n, name=f"L = {n}") for n in ITERATIONS]
    return sweep(bench, "Iterations L", "L", [float(n) for n in ITERATIONS], tried)


def eta(bench: Workbench) -> Findings:
    """P2M over the weight of fresh noise eta = 0 ... 1."""
    tried = [our_contestant(bench.model, eta=value, name=f"eta = {value:g}") for value in ETAS]
    return sweep(bench, "Sampling noise eta", "eta", ETAS, tried)


def sweep(
    bench: Workbench,
    title: str,
    axis: str,
    settings: Sequence[float],
    tried: Sequence[Contestant],
    notes: Sequence[str] = (),
) -> Findings:
    """Measure all settings, and draw one curve per column."""
    test_set = bench.punet()
    found = bench.grid.run(test_set, tried, bench.columns)
    rows = measured_rows(found, tried, bench.columns, ("cd", "p2m"))
    shapes = len(test_set.shapes[: bench.grid.shapes])
    findings = Findings(title)
    findings.tables.append(
        Table(title, heads(bench.columns, ("cd", "p2m")), rows, [bench.note(shapes), *notes])
    )
    path = bench.out / f"{title.split()[0].lower()}.svg"
    line_plot([_curve(rows, settings, c) for c in bench.columns], path, axis, "P2M x 1e5")
    findings.pictures.append(Picture(title, path))
    return findings


def _curve(rows: Sequence[Row], settings: Sequence[float], column: Column) -> Curve:
    return Curve(column.name, list(settings), [row.values[head(column, "p2m")] for row in rows])

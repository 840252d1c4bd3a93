"""Experiments: Tables 1, 2 and 4 (methods, noise patterns, iterative strategies)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from pointmend.denoising.options import SamplerOptions
from pointmend.evaluation.noise import Pattern
from pointmend.evaluation.published import published_rows, published_value
from pointmend.evaluation.tables import Row, Table
from pointmend.evaluation.testsets import TestSet
from pointmend.methods.method import Contestant
from pointmend.methods.registry import contestants, our_contestant

from .bench import Findings, Picture, Workbench
from .grid import Column, hardest, head, measured_rows
from .pictures import compare_methods

TABLE_1 = (
    "identity",
    "oracle",
    "jet",
    "bilateral",
    "glr",
    "sbd",
    "sbd+our",
    "pointmend",
    "pointmend+spread",
)
TABLE_2 = ("identity", "bilateral", "glr", "sbd", "pointmend")
PATTERNS: tuple[Pattern, ...] = tuple(p for p in get_args(Pattern) if p != "gaussian")

# Shapes of the paper's comparisons that stand in the pictures, where a set has them.
PICTURED = ("casting", "chair", "fandisk", "quadric")


def table1(bench: Workbench) -> Findings:
    """Table 1: CD and P2M of all methods on the synthetic test sets."""
    peers = contestants(bench.methods or TABLE_1, data=bench.data, model=bench.model)
    rows: list[Row] = []
    findings = Findings("Table 1: methods on synthetic test sets")
    test_sets = bench.benchmarks()
    for test_set in test_sets:
        found = bench.grid.run(test_set, peers, bench.columns)
        rows += measured_rows(found, peers, bench.columns, ("cd", "p2m"), test_set.name)
        rows += paper_rows(1, bench.columns, ("cd", "p2m"), (test_set.name,))
        findings.pictures.extend(_pictures(bench, test_set, peers))
    shapes = len(test_sets[0].shapes[: bench.grid.shapes])
    findings.tables.append(
        Table(findings.title, heads(bench.columns, ("cd", "p2m")), rows, [bench.note(shapes)])
    )
    return findings


def table2(bench: Workbench) -> Findings:
    """Table 2: P2M under noise patterns no method was trained on."""
    peers = contestants(bench.methods or TABLE_2, data=bench.data, model=bench.model)
    test_set = bench.punet()
    rows: list[Row] = []
    for pattern in PATTERNS:
        columns = [Column(c.points, c.level, pattern) for c in bench.columns]
        found = bench.grid.run(test_set, peers, columns)
        rows += measured_rows(found, peers, columns, ("p2m",), pattern)
        rows += paper_rows(2, columns, ("p2m",), (pattern,))
    findings = Findings("Table 2: noise patterns")
    shapes = len(test_set.shapes[: bench.grid.shapes])
    notes = [bench.note(shapes), "Noise drawn by us; the paper's own draws are not published."]
    findings.tables.append(Table(findings.title, heads(bench.columns, ("p2m",)), rows, notes))
    return findings


def table4(bench: Workbench) -> Findings:
    """The appendix's table: our iterative strategy on another network, and alignment."""
    unaligned = our_contestant(
        bench.model, options=SamplerOptions(plan="unaligned"), name="w/o align"
    )
    full = our_contestant(bench.model, name="Full")
    peers = contestants(bench.methods or ("sbd", "sbd+our"), data=bench.data)
    peers += [unaligned, full]
    test_set = bench.punet()
    found = bench.grid.run(test_set, peers, bench.columns)
    rows = measured_rows(found, peers, bench.columns, ("cd", "p2m"))
    rows += paper_rows(4, bench.columns, ("cd", "p2m"), ("PUNet",))
    findings = Findings("Table 4: iterative strategy and schedule arrangement")
    shapes = len(test_set.shapes[: bench.grid.shapes])
    notes = [bench.note(shapes), "PSR's weights are not public: its rows are the paper's."]
    findings.tables.append(Table(findings.title, heads(bench.columns, ("cd", "p2m")), rows, notes))
    return findings


def heads(columns: Sequence[Column], metrics: Sequence[str]) -> list[str]:
    """The names of all columns."""
    return [head(column, metric) for column in columns for metric in metrics]


def paper_rows(
    table: int, columns: Sequence[Column], metrics: Sequence[str], groups: Sequence[str]
) -> list[Row]:
    """The rows a table of the paper has for these groups; group names only where it has several."""
    rows = []
    for group in groups:
        for method in dict.fromkeys(m for g, m, _ in published_rows(table) if g == group):
            values = {
                head(column, metric): published_value(
                    table, group, method, metric, (column.points, column.level)
                )
                for column in columns
                for metric in metrics
            }
            rows.append(Row(method, values, "paper", group if table in (1, 2) else ""))
    return rows


def _pictures(bench: Workbench, test_set: TestSet, peers: Sequence[Contestant]) -> list[Picture]:
    shapes = [name for name in PICTURED if name in test_set.shapes[: bench.grid.shapes]]
    shapes = shapes or test_set.shapes[: bench.grid.shapes][:2]
    return [compare_methods(bench, test_set, shapes, peers, hardest(bench.columns))]

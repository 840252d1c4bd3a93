"""Command line: `pointmend evaluate`, any methods on any meshes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from pointmend.errors import InputError

from .model import at_least_one, use_threads
from .paths import make_folder
from .results import cell_progress, show


@dataclass(frozen=True)
class Evaluate:
    """Measure methods on a test set: any folder of meshes, or a benchmark by name."""

    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Folder of meshes (OFF, OBJ, PLY, STL); noise is added by us."""
    benchmark: Annotated[
        Literal["PUNet", "PCNet", "MODNet"] | None, tyro.conf.arg(help_behavior_hint="")
    ] = None
    """Take this benchmark in DATA, with its own noisy clouds, instead of all meshes."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ("identity", "pointmend")
    """What to measure: identity oracle jet bilateral wlop mls glr sbd sbd+our pointmend
    pointmend+spread."""
    metrics: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")] = ("cd", "p2m", "rms")
    """Figures to show: cd p2m p2m_points p2m_faces rms percentile_95 largest worsened hausdorff
    spacing_variation cpu_seconds."""
    points: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N")] = (10_000,)
    """Points per cloud, one column each."""
    levels: Annotated[tuple[float, ...], tyro.conf.arg(metavar="SHARE")] = (0.01, 0.02, 0.03)
    """Noise as a share of the radius, one column each."""
    pattern: Literal[
        "gaussian", "laplace", "discrete", "anisotropic", "unidirectional", "uniform"
    ] = "gaussian"
    """Kind of noise."""
    shapes: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: all)")
    ] = None
    """Take only the first shapes."""
    by_shape: bool = False
    """Also show every single shape, with a picture of the three the last method is worst on."""
    model: Annotated[str, tyro.conf.arg(metavar="NAME")] = "default"
    """Our weights: a name in the box, or a .safetensors file."""
    steps: Annotated[int, tyro.conf.arg(metavar="N")] = 5
    """Steps of our sampler."""
    out: Annotated[Path, tyro.conf.arg(metavar="OUT")] = Path("results")
    """Folder for tables (Markdown, CSV, JSON, LaTeX), report and cells."""
    cache: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: user's cache)")
    ] = None
    """Where sampled meshes are kept between runs."""
    threads: Annotated[int, tyro.conf.arg(metavar="N")] = 1
    """CPU threads."""

    def run(self) -> None:
        """Measure, write, and show the table."""
        from pointmend.evaluation.cells import METRICS, CellStore
        from pointmend.evaluation.tables import Table
        from pointmend.evaluation.testsets import open_test_set
        from pointmend.experiments.bench import Findings, Workbench
        from pointmend.experiments.by_shape import add_shapes
        from pointmend.experiments.grid import Column, Grid, means, measured_rows
        from pointmend.experiments.paper_tables import heads
        from pointmend.experiments.targets import write_findings
        from pointmend.methods.registry import contestants

        use_threads(self.threads)
        at_least_one("--points", *self.points)
        at_least_one("--shapes", self.shapes)
        if unknown := [name for name in self.metrics if name not in METRICS]:
            raise InputError(f"unknown metric {unknown[0]!r}; choose of {' '.join(METRICS)}")
        test_set = open_test_set(self.data, self.benchmark, self.cache)
        peers = contestants(self.methods, data=self.data, model=self.model, steps=self.steps)
        columns = [Column(n, level, self.pattern) for level in self.levels for n in self.points]
        make_folder(self.out)
        with cell_progress() as tell:
            grid = Grid(CellStore(self.out / "cells"), self.shapes, tell)
            cells = grid.measure(test_set, peers, columns)
        rows = measured_rows(means(cells), peers, columns, self.metrics)
        shapes = len(test_set.shapes[: self.shapes])
        note = f"{shapes} shapes, {self.pattern} noise, CD x 1e4, P2M x 1e5 (published variant)."
        title = f"{test_set.name}: means over {shapes} shapes"
        findings = Findings(title, [Table(title, heads(columns, self.metrics), rows, [note])])
        if self.by_shape:
            bench = Workbench(self.data, self.out, grid, cache=self.cache)
            add_shapes(findings, bench, test_set, peers, columns, self.metrics, cells)
        written = write_findings(findings, self.out, f"evaluate-{test_set.name}")
        show(findings, written[0])

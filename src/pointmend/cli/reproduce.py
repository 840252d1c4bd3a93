"""Command line: `pointmend reproduce`, every experiment of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from .model import at_least_one, use_threads
from .paths import make_folder
from .results import cell_progress, data_folder, show

Target = Literal[
    "table1", "table2", "table3", "table4", "iterations", "eta", "lambda", "thin", "scans"
]


@dataclass(frozen=True)
class Reproduce:
    """
    Run an experiment of the paper, with the rows the paper prints beside ours.

    Every cell is kept in OUT: an interrupted run goes on where it stopped.
    """

    target: Annotated[Target, tyro.conf.Positional, tyro.conf.arg(metavar="TARGET")]
    """table1 methods, table2 noise patterns, table3 ablations, table4 iterative strategies,
    iterations and eta of the sampler, lambda of the loss, thin structures, real scans."""
    data: Annotated[
        Path | None, tyro.conf.arg(metavar="DATA", help_behavior_hint="(default: $POINTMEND_DATA)")
    ] = None
    """Folder of the benchmark: PUNet (PCNet, MODNet), training shapes, peers/sbd.safetensors."""
    out: Annotated[Path, tyro.conf.arg(metavar="OUT")] = Path("results")
    """Folder for tables (Markdown, CSV, JSON, LaTeX), pictures, report and cells."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = ()
    """Other methods than the paper's: identity oracle jet bilateral wlop mls glr sbd sbd+our
    pointmend pointmend+spread."""
    points: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N")] = (10_000, 50_000)
    """Points per cloud, one column each."""
    levels: Annotated[tuple[float, ...], tyro.conf.arg(metavar="SHARE")] = (0.01, 0.02, 0.03)
    """Noise as a share of the radius, one column each."""
    shapes: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: all)")
    ] = None
    """Take only the first shapes of each set."""
    model: Annotated[str, tyro.conf.arg(metavar="NAME")] = "default"
    """Our weights: a name in the box, or a .safetensors file."""
    train_minutes: Annotated[float, tyro.conf.arg(metavar="M")] = 0.0
    """CPU minutes to train each network of table3, lambda and thin that OUT does not hold yet."""
    cache: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: user's cache)")
    ] = None
    """Where sampled meshes are kept between runs."""
    threads: Annotated[int, tyro.conf.arg(metavar="N")] = 1
    """CPU threads."""

    def run(self) -> None:
        """Run the experiment, write what it found, and show its tables."""
        from pointmend.evaluation.cells import CellStore
        from pointmend.experiments.bench import Workbench
        from pointmend.experiments.grid import Grid
        from pointmend.experiments.targets import TARGETS, write_findings

        use_threads(self.threads)
        at_least_one("--points", *self.points)
        at_least_one("--shapes", self.shapes)
        data = data_folder(self.data)
        make_folder(self.out)
        with cell_progress() as tell:
            bench = Workbench(
                data=data,
                out=self.out,
                grid=Grid(CellStore(self.out / "cells"), self.shapes, tell),
                model=self.model,
                points=self.points,
                levels=self.levels,
                methods=self.methods or None,
                train_minutes=self.train_minutes,
                cache=self.cache,
            )
            findings = TARGETS[self.target](bench)
        written = write_findings(findings, self.out, self.target)
        show(findings, written[0])

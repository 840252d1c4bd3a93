"""Experiments: the workbench every experiment gets, and the findings it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pointmend.errors import InputError
from pointmend.evaluation.tables import Table
from pointmend.evaluation.testsets import BENCHMARKS, TestSet, open_benchmark

from .grid import Column, Grid


@dataclass(frozen=True)
class Workbench:
    """
    What an experiment works with.

    Attributes
    ----------
    data : folder of the benchmark; also of SBD's weights and of training shapes.
    out : folder for tables, pictures, cells and trained ablations.
    grid : where cells are computed and kept.
    model : our weights.
    points, levels : columns of the tables.
    methods : names of the peers to run; None for those the experiment has in the paper.
    train_minutes : CPU minutes for each network that has to be trained; 0 trains none.
    cache : where sampled meshes are kept.
    """

    data: Path
    out: Path
    grid: Grid
    model: str = "default"
    points: Sequence[int] = (10_000, 50_000)
    levels: Sequence[float] = (0.01, 0.02, 0.03)
    methods: Sequence[str] | None = None
    train_minutes: float = 0.0
    cache: Path | None = None

    @property
    def columns(self) -> list[Column]:
        """All columns of Gaussian noise, in the order of the paper."""
        return [Column(points, level) for level in self.levels for points in self.points]

    def punet(self) -> TestSet:
        """The test set nearly everything in the paper is measured on."""
        return open_benchmark(self.data, "PUNet", self.cache)

    def benchmarks(self) -> list[TestSet]:
        """Those of the paper's test sets that the data folder holds."""
        found = []
        for name in BENCHMARKS:
            try:
                found.append(open_benchmark(self.data, name, self.cache))
            except InputError:
                continue
        if not found:
            names = ", ".join(BENCHMARKS)
            raise InputError(
                f"{self.data}: none of the test sets {names} is there; see docs/evaluation.md"
            )
        return found

    def note(self, shapes: int) -> str:
        """What all tables say about how they were made."""
        return f"{shapes} shapes, weights '{self.model}', CD x 1e4, P2M x 1e5 (published variant)."


@dataclass(frozen=True)
class Picture:
    """A picture for the report: its title and its file."""

    title: str
    path: Path


@dataclass(frozen=True)
class Findings:
    """
    What an experiment found.

    Attributes
    ----------
    title : of the experiment.
    tables, pictures : in the order they are shown.
    notes : what could not be done, and why.
    """

    title: str
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from pointmend.evaluation.cells import CellStore
from pointmend.experiments.bench import Workbench
from pointmend.experiments.grid import Column, Grid, head, measured_rows
from pointmend.methods.method import Contestant, Float64, Task
from pointmend.methods.trivial import Identity

POINTS = 300  # as many as the tiny benchmark's clouds have


@dataclass
class Stumbling:
    """Stops at a certain cloud, like a run that is interrupted."""

    stops_at: int
    name: str = "stumbling"
    keeps_order: bool = True
    calls: int = 0

    def __call__(self, task: Task) -> Float64:
        self.calls += 1
        if self.calls == self.stops_at:
            raise KeyboardInterrupt
        return task.points.copy()


def test_cells_are_means_over_shapes(bench: Workbench) -> None:
    test_set = bench.punet()
    columns = [Column(POINTS, 0.01), Column(POINTS, 0.03)]
    identity = Contestant(Identity(), "identity")
    found = bench.grid.run(test_set, [identity], columns)
    single = [
        bench.grid.store.measurement(identity, test_set.case(shape, POINTS, 0.03))
        for shape in test_set.shapes
    ]
    expected = np.mean([cell.p2m for cell in single])
    assert found["noisy input", columns[1]].p2m == pytest.approx(expected)
    rows = measured_rows(found, [identity], columns, ("p2m", "cd"), "PUNet")
    assert rows[0].values[head(columns[1], "p2m")] == pytest.approx(expected)
    assert head(columns[1], "p2m") == "0.3k 3 % P2M"


def test_an_interrupted_run_goes_on_where_it_stopped(bench: Workbench) -> None:
    columns = [Column(POINTS, 0.01), Column(POINTS, 0.03)]
    method = Stumbling(stops_at=3)
    contestant = Contestant(method, "stumbling")
    with pytest.raises(KeyboardInterrupt):
        bench.grid.run(bench.punet(), [contestant], columns)
    assert method.calls == 3
    bench.grid.run(bench.punet(), [contestant], columns)
    assert method.calls == 5  # two cells were kept, two were left


def test_progress_counts_every_cell(bench: Workbench, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    grid = Grid(CellStore(tmp_path), 1, lambda done, total, doing: told.append((done, total)))
    grid.run(bench.punet(), [Contestant(Identity(), "i")], [Column(POINTS, 0.01)])
    assert told == [(0, 1), (1, 1)]


def test_the_workbench_names_what_is_missing(bench: Workbench, tmp_path: Path) -> None:
    assert [found.name for found in bench.benchmarks()] == ["PUNet"]
    with pytest.raises(Exception, match="none of the test sets"):
        replace(bench, data=tmp_path).benchmarks()

from pathlib import Path

import numpy as np
import pytest

from pointmend import PointCloud, write
from pointmend.denoising.algorithm import Progress
from pointmend.viewer.live import LiveFrames
from pointmend.viewer.scan import HEIGHT, ROUGHNESS, Scan


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    """A noisy plane of 400 points, one of them not finite."""
    rng = np.random.default_rng(0)
    points = np.column_stack((rng.random((400, 2)), 0.05 * rng.standard_normal(400)))
    points[9] = np.nan
    path = tmp_path / "plane.npy"
    write(PointCloud(points), path)
    return Scan.open(path, path.name, str(path))


def step(scan: Scan, rows: slice | None) -> Progress:
    """A report that some points, or all, lie at height 1."""
    positions = scan.cloud.positions.copy()
    positions[:, 2] = np.where(np.isnan(positions[:, 2]), np.nan, 1.0)
    if rows is None:
        return Progress(1, 1, 1, 1, positions)
    return Progress(1, 1, 1, 1, positions[rows], regions=2, rows=np.arange(400)[rows])


def test_reports_without_positions_change_nothing(scan: Scan) -> None:
    assert not LiveFrames(scan).take(Progress(1, 5, 0, 5))


def test_a_whole_cloud_moves_at_once(scan: Scan) -> None:
    live = LiveFrames(scan)
    assert live.take(step(scan, None))
    frame = live.frame(ROUGHNESS, None)
    assert len(frame.points) == 399
    assert (frame.points[:, 2] == 1.0).all()
    assert frame.values is not None
    assert frame.values.max() < 1e-6
    assert np.ptp(frame.brightness) < 1e-6


@pytest.mark.parametrize("meanwhile", ["looking", "another colour", "away"])
def test_tiles_that_are_done_stay_so(scan: Scan, meanwhile: str) -> None:
    live = LiveFrames(scan)
    live.take(step(scan, slice(0, 200)))
    if meanwhile == "away":
        live.skip()
    else:
        first = live.frame(HEIGHT if meanwhile == "another colour" else ROUGHNESS, None)
        assert (first.points[:, 2] == 1.0).sum() == 199
        before = scan.frame(ROUGHNESS, None, after=False)
        assert np.array_equal(first.points[199:], before.points[199:])
    live.take(step(scan, slice(200, 400)))
    last = live.frame(ROUGHNESS, None)
    assert (last.points[:, 2] == 1.0).all()
    assert last.values is not None
    assert last.values.max() < 1e-6

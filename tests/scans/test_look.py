from pathlib import Path

import numpy as np
import pytest

from pointmend import PointCloud, write
from pointmend.denoising.denoiser import Denoiser
from pointmend.scans.budget import Budget
from pointmend.scans.look import look_at


def test_streamed_and_held_say_the_same(
    tmp_path: Path, denoiser: Denoiser, cloud: PointCloud
) -> None:
    holes = cloud.positions.copy()
    holes[4], holes[6] = np.nan, holes[5]
    path = tmp_path / "a.ply"
    write(cloud.with_positions(holes), path)
    held = look_at(denoiser, path, Budget(9000, 10_000, False, 0))
    streamed = look_at(denoiser, path, Budget(9000, 2_500, True, 0))
    assert (held.points, held.invalid, held.duplicates) == (9000, 1, 1)
    assert (streamed.points, streamed.invalid, streamed.duplicates) == (9000, 1, None)
    assert np.array_equal(held.low, streamed.low)
    assert np.array_equal(held.high, streamed.high)
    assert streamed.estimate.sigma == pytest.approx(held.estimate.sigma, rel=0.1)
    assert streamed.estimate.spacing == pytest.approx(held.estimate.spacing)
    assert list(streamed.sample.attributes) == list(cloud.attributes)

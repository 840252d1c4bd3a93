"""What points were moved by together, against plain loops."""

import numpy as np
import torch
from scipy.spatial import cKDTree

from pointmend.geometry.planes import WALK_READS
from pointmend.geometry.ways import WALKS, WAY_SCALES, way_of_others, ways_together

COUNT, K = 90, 32


def moved_points() -> tuple[torch.Tensor, torch.Tensor]:
    """Ways (COUNT, 3) and neighbours (COUNT, K) of points in a box."""
    rng = np.random.default_rng(0)
    _, near = cKDTree(points := rng.random((COUNT, 3))).query(points, K)
    return torch.from_numpy(rng.standard_normal((COUNT, 3))), torch.from_numpy(near)


def test_the_mean_of_the_others_ways() -> None:
    way, near = moved_points()
    found = way_of_others(way, near[:7])
    for row, around in zip(found, near):
        assert torch.allclose(row, sum(way[i] for i in around[1:]) / (K - 1))  # type: ignore[arg-type]


def test_larger_neighbourhoods_are_walks_from_smaller_ones() -> None:
    way, near = moved_points()
    found = ways_together(way, near)
    assert found.shape == (COUNT, WAY_SCALES, 3)
    assert found.dtype == torch.float32
    expected = torch.stack([way[around[1:]].mean(dim=0) for around in near])
    assert torch.allclose(found[:, 0], expected.float())
    for scale, walks in enumerate(WALKS, start=1):
        for _ in range(walks):
            read = near[:, :: K // WALK_READS]
            expected = torch.stack([expected[around].mean(dim=0) for around in read])
        assert torch.allclose(found[:, scale], expected.float(), atol=1e-6)


def test_what_all_were_moved_by_is_found_at_every_scale_and_noise_at_none() -> None:
    way, near = moved_points()
    together = torch.tensor([0.0, 0.0, 5.0], dtype=torch.float64)
    with_shape, noise = ways_together(way + together, near), ways_together(way, near)
    assert torch.allclose(with_shape - noise, together.float().expand_as(noise), atol=1e-5)
    # Means over more points have less of the noise left.
    left = noise.square().sum(dim=2).mean(dim=0)
    assert 3.0 > 10.0 * left[0] > 10.0 * left[1] > 10.0 * left[2]


def test_a_single_point_has_no_others() -> None:
    alone = torch.zeros(1, K, dtype=torch.int64)
    assert ways_together(torch.ones(1, 3, dtype=torch.float64), alone).isfinite().all()

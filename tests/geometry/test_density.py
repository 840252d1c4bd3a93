import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.geometry.density import (
    common_levels,
    level_of,
    nearest_level,
    surroundings,
)


def grid(side: int, step: float) -> NDArray[np.float64]:
    x, y = np.meshgrid(np.arange(side) * step, np.arange(side) * step)
    return np.stack([x, y, 0.0 * x], axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("offset", [0.0, 5e6])
def test_local_spacing_of_a_grid_is_its_step(offset: float) -> None:
    around = surroundings(grid(30, 0.2) + offset)
    inner = around.spacing.reshape(30, 30)[8:-8, 8:-8]
    assert np.allclose(inner, 0.2, rtol=0.15)
    assert (around.neighbours == np.arange(900)[:, None]).any(axis=1).all()


def test_neighbours_are_the_nearest_by_all_distances() -> None:
    points = np.random.default_rng(0).uniform(size=(200, 3))
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    naive = np.sort(distance, axis=1)[:, :16]
    found = np.take_along_axis(distance, surroundings(points).neighbours, axis=1)
    assert np.allclose(np.sort(found, axis=1), naive)


def test_spacing_follows_density_and_ignores_a_far_point() -> None:
    dense, sparse = grid(40, 0.01), grid(20, 1.0) + np.array([100.0, 0.0, 0.0])
    points = np.concatenate([dense, sparse, [[0.0, 0.0, 1e4]]])
    spacing = surroundings(points).spacing
    assert np.median(spacing[:1600]) == pytest.approx(0.01, rel=0.2)
    assert np.median(spacing[1600:2000]) == pytest.approx(1.0, rel=0.2)
    assert spacing[:1600].max() < 0.1


def test_smoothing_is_the_mean_over_neighbours_again_and_again() -> None:
    around = surroundings(np.random.default_rng(0).uniform(size=(50, 3)))
    values = np.arange(50.0)
    once = np.array([values[row].mean() for row in around.neighbours])
    twice = np.array([once[row].mean() for row in around.neighbours])
    assert np.allclose(around.smooth(values, 2), twice)
    assert np.array_equal(around.smooth(values, 0), values)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_points(count: int) -> None:
    around = surroundings(np.random.default_rng(0).uniform(size=(count, 3)))
    assert around.neighbours.shape == (count, 16)
    assert np.isfinite(around.spacing).all()


def test_levels_are_factors_of_four() -> None:
    spacing = np.array([0.01, 0.019, 0.021, 0.04, 0.16, 0.0, 1e300])
    assert level_of(spacing, 0.01).tolist() == [0, 0, 1, 1, 2, -20, 20]
    assert level_of(spacing, 0.0).tolist() == [0] * 7


def test_rare_levels_join_their_neighbours() -> None:
    levels = np.array([0] * 500 + [1] * 400 + [3] * 3 + [-1] * 2)
    common = common_levels(levels)
    assert common == (0, 1)
    assert nearest_level(np.array([-5, 0, 1, 3]), common).tolist() == [0, 0, 1, 1]
    assert nearest_level(np.array([1]), (0, 2)).tolist() == [0]

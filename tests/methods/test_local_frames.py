import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.methods.local_frames import (
    fit_quadrics,
    in_unit_sphere,
    jet_normals,
    neighbourhoods,
    neighbours_for_level,
    principal_axes,
)

Float64 = NDArray[np.float64]


def cloud(count: int = 60, seed: int = 0) -> Float64:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1.0, 1.0, (count, 3))
    points[:, 2] = 0.2 * points[:, 0] ** 2 - 0.1 * points[:, 1] + 0.02 * rng.standard_normal(count)
    return points


def test_neighbourhoods_are_brute_force_nearest_first() -> None:
    points = cloud()
    table = neighbourhoods(points, 7)
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert np.array_equal(table, np.argsort(distance, axis=1)[:, :8])
    assert neighbourhoods(points[:3], 7).shape == (3, 3)


@pytest.mark.parametrize("weighted", [False, True])
def test_axes_and_quadrics_agree_with_numpy_one_by_one(weighted: bool) -> None:
    points = cloud()
    table = neighbourhoods(points, 20)
    offsets = points[table] - points[:, None]
    weights = np.random.default_rng(1).uniform(0.2, 1.0, table.shape) if weighted else None
    axes = principal_axes(offsets, weights)
    local = offsets @ axes
    found = fit_quadrics(local, weights)
    for q in (0, 11, 59):
        w = np.ones(21) if weights is None else weights[q]
        covariance = np.cov(offsets[q].T, aweights=w, bias=True)
        _, vectors = np.linalg.eigh(covariance)
        assert np.allclose(np.abs(np.sum(axes[q] * vectors[:, ::-1], axis=0)), 1.0)
        x, y, z = local[q].T
        basis = np.stack([np.ones(21), x, y, x * x / 2, x * y, y * y / 2], axis=1)
        root = np.sqrt(w)
        expected, *_ = np.linalg.lstsq(root[:, None] * basis, root * z, rcond=None)
        assert np.allclose(found[q], expected, atol=1e-8)


def test_points_on_a_line_still_have_a_quadric() -> None:
    line = np.zeros((1, 9, 3))
    line[0, :, 0] = np.linspace(-1.0, 1.0, 9)
    line[0, :, 2] = 0.5
    assert np.allclose(fit_quadrics(line)[0], [0.5, 0, 0, 0, 0, 0], atol=1e-9)


def test_normals_are_those_of_the_fitted_slope() -> None:
    axes = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 3, 3)))[0]
    coefficients = np.zeros((4, 6))
    coefficients[:, 1:3] = [0.3, -0.4]
    normals = jet_normals(axes, coefficients)
    for q in range(4):
        along_x = axes[q] @ np.array([1.0, 0.0, 0.3])
        along_y = axes[q] @ np.array([0.0, 1.0, -0.4])
        assert np.allclose([normals[q] @ along_x, normals[q] @ along_y], 0.0)
        assert np.linalg.norm(normals[q]) == pytest.approx(1.0)


def test_the_known_level_chooses_the_neighbours() -> None:
    levels = (None, 0.005, 0.01, 0.015, 0.02, 0.03)
    assert [neighbours_for_level(level) for level in levels] == [24, 30, 30, 60, 60, 100]


def test_what_is_denoised_lies_in_the_unit_sphere() -> None:
    points = 100.0 * cloud() + np.array([5e5, 5e6, 0.0])
    seen: list[Float64] = []

    def shift(x: Float64) -> Float64:
        seen.append(x)
        return x + 0.5

    moved = in_unit_sphere(points, shift)
    assert np.linalg.norm(seen[0], axis=1).max() == pytest.approx(1.0)
    radius = np.linalg.norm(points - (points.min(axis=0) + points.max(axis=0)) / 2, axis=1).max()
    assert np.allclose(moved - points, 0.5 * radius)

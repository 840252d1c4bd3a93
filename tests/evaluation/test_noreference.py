import numpy as np
import pytest

from pointmend.evaluation.noreference import plane_residuals, scan_figures


def test_residuals_are_the_distances_of_neighbours_to_their_plane() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((300, 3)) * [1.0, 1.0, 0.05] + [5e5, 5e6, 0.0]
    found = plane_residuals(points, neighbours=10)
    for i in (0, 7, 299):
        near = points[np.argsort(np.linalg.norm(points - points[i], axis=1))[:10]]
        spread = np.linalg.svd(near - near.mean(axis=0), compute_uv=False)[-1]
        assert found[i] == pytest.approx(spread / np.sqrt(10), rel=1e-4)


def test_some_points_are_as_rough_as_among_all() -> None:
    points = np.random.default_rng(3).random((400, 3))
    rows = np.array([3, 399, 17])
    assert np.array_equal(plane_residuals(points, rows=rows), plane_residuals(points)[rows])


def test_a_plane_has_no_residual_and_few_points_are_enough() -> None:
    points = np.random.default_rng(1).random((100, 3)) * [1.0, 1.0, 0.0]
    assert plane_residuals(points).max() < 1e-7
    assert plane_residuals(points[:2]).shape == (2,)


def test_figures_say_how_far_points_went() -> None:
    before = np.random.default_rng(2).random((500, 3))
    after = before.copy()
    after[0] += [3.0, 4.0, 0.0]
    figures = scan_figures(before, after)
    assert figures.moved_largest == pytest.approx(5.0)
    assert figures.moved_rms == pytest.approx(5.0 / np.sqrt(500))
    assert figures.moved_percentile_95 == 0.0
    assert figures.residual > 0.0

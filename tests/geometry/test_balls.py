"""Principal variances, against those of numpy one ball at a time."""

import numpy as np
import pytest

from pointmend.geometry.balls import principal_variances


def test_they_are_the_eigenvalues_of_each_covariance() -> None:
    rng = np.random.default_rng(0)
    points = 1e3 + rng.standard_normal((200, 3)) * [3.0, 2.0, 1.0]
    balls = [list(range(50)), list(range(4)), list(range(50, 200))]
    found = principal_variances(points, balls, least_points=5)
    expected = [np.linalg.eigvalsh(np.cov(points[rows].T)) for rows in (balls[0], balls[2])]
    assert found == pytest.approx(np.array(expected), rel=1e-9)


def test_a_plane_has_no_negative_variance_and_nothing_has_none() -> None:
    rng = np.random.default_rng(1)
    plane = 100.0 + rng.standard_normal((30, 2)) @ rng.standard_normal((2, 3))
    assert principal_variances(plane, [list(range(30))], 5)[0, 0] >= 0.0
    assert principal_variances(plane, [[0, 1]], 5).shape == (0, 3)
    assert principal_variances(plane, [], 5).shape == (0, 3)

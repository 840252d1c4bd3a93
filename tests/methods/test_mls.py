import numpy as np

from pointmend.methods.method import Task
from pointmend.methods.mls import MOST, MovingLeastSquares, project


def test_a_projection_is_the_weighted_fit_point_by_point() -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.5, 0.5, (150, 3))
    points[:, 2] = 0.5 * points[:, 0] ** 2 + 0.01 * rng.standard_normal(150)
    bandwidth = 0.4  # so wide that every point sees all others
    assert len(points) <= MOST
    found = project(points, bandwidth, 1)
    within = [np.sum(np.linalg.norm(points - p, axis=1) <= 2.5 * bandwidth) for p in points]
    width = int(np.median(within))
    for i in (0, 70, 149):
        distance = np.linalg.norm(points - points[i], axis=1)
        near = np.argsort(distance)[:width]
        w = np.exp(-0.5 * (distance[near] / bandwidth) ** 2)
        offsets = points[near] - points[i]
        _, vectors = np.linalg.eigh(np.cov(offsets.T, aweights=w, bias=True))
        axes = vectors[:, ::-1]
        x, y, z = (offsets @ axes).T
        root = np.sqrt(w)[:, None]
        basis = np.stack([np.ones(width), x, y, x * x, x * y, y * y], axis=1)
        height = np.linalg.lstsq(root * basis, root[:, 0] * z, rcond=None)[0][0]
        assert np.allclose(found[i], points[i] + height * axes[:, 2], atol=1e-8)


def test_no_bandwidth_means_no_move() -> None:
    points = np.random.default_rng(1).random((50, 3))
    assert np.array_equal(project(points, 0.0, 3), points)


def test_known_noise_widens_the_view() -> None:
    points = np.random.default_rng(2).random((500, 3))
    points[:, 2] *= 0.02
    calm, wide = (MovingLeastSquares()(Task(points, level)) for level in (None, 0.1))
    assert np.std(wide[:, 2]) < np.std(calm[:, 2])

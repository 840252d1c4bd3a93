import numpy as np

from pointmend.methods.jet import JetSmoothing, smooth
from pointmend.methods.method import Task


def test_every_point_moves_to_the_quadric_of_its_neighbourhood() -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.5, 0.5, (80, 3))
    points[:, 2] = points[:, 0] ** 2 + 0.01 * rng.standard_normal(80)
    found = smooth(points, 15)
    for i in (0, 40, 79):
        near = points[np.argsort(np.linalg.norm(points - points[i], axis=1))[:16]] - points[i]
        _, vectors = np.linalg.eigh(np.cov(near.T))
        axes = vectors[:, ::-1]
        x, y, z = (near @ axes).T
        basis = np.stack([np.ones(16), x, y, x * x, x * y, y * y], axis=1)
        height = np.linalg.lstsq(basis, z, rcond=None)[0][0]
        assert np.allclose(found[i], points[i] + height * axes[:, 2], atol=1e-9)


def test_a_quadric_is_left_where_it_is() -> None:
    x, y = np.meshgrid(np.linspace(-0.1, 0.1, 15), np.linspace(-0.1, 0.1, 15))
    points = np.stack([x, y, 0.3 * x**2], axis=2).reshape(-1, 3)
    assert np.abs(JetSmoothing()(Task(points)) - points).max() < 2e-5


def test_more_neighbours_are_taken_for_more_noise() -> None:
    points = np.random.default_rng(1).random((300, 3))
    assert np.array_equal(JetSmoothing()(Task(points, 0.03)), JetSmoothing(100)(Task(points)))
    assert not np.array_equal(JetSmoothing()(Task(points, 0.01)), JetSmoothing(100)(Task(points)))

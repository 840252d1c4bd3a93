import numpy as np
import pytest

from pointmend.evaluation.scenes import (
    BODIES,
    SAMPLINGS,
    SEEN,
    SPACING,
    Body,
    Box,
    Plane,
    Sampling,
    Scanner,
    Sphere,
    scene,
)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_clean_points_lie_on_the_surface(name: str, sampling: Sampling) -> None:
    what = scene(name, sampling, np.random.default_rng(0))
    assert len(what.clean) > 5000
    assert what.body.distance(what.clean).max() < 1e-9
    if sampling == "even":
        assert what.spacing == pytest.approx(SPACING, rel=0.1)


@pytest.mark.parametrize("body", [Sphere(2.0), Box((1.0, 0.5, 0.2))])
def test_distances_agree_with_a_dense_sample(body: Body) -> None:
    rng = np.random.default_rng(0)
    dense = body.sample(0.02, rng)
    points = rng.normal(size=(40, 3))
    naive = np.linalg.norm(points[:, None] - dense, axis=2).min(axis=1)
    assert np.allclose(body.distance(points), naive, atol=0.03)


def test_a_plane_ends_for_rays_only() -> None:
    plane = Plane(1.0)
    down = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0], [0.8, 0.0, -0.6]])
    ways = plane.hit(np.array([0.0, 0.0, 3.0]), down)
    assert ways.tolist() == [3.0, np.inf, np.inf]
    assert plane.distance(np.array([[9.0, 9.0, 2.0]])).tolist() == [2.0]


@pytest.mark.parametrize("name", BODIES)
def test_rays_stop_at_the_first_surface(name: str) -> None:
    body, scanner = SEEN[name]
    points, rays = scanner.scan(body)
    origin = np.array(scanner.origin)
    ranges = np.linalg.norm(points - origin, axis=1)
    assert np.allclose(origin + ranges[:, None] * rays, points)
    # On the way to the hit a ray touches the surface nowhere else.
    for share in (0.3, 0.6, 0.9, 0.99):
        assert (body.distance(origin + share * (points - origin)) > 1e-6).all()


def test_rings_are_dense_along_and_sparse_across() -> None:
    points, _ = Scanner((0.0, 0.0, 1.8), rings=16).scan(Plane(10.0))
    distance = np.round(np.linalg.norm(points[:, :2], axis=1), 6)
    rings = np.unique(distance)
    along = 2 * np.pi * rings / 1800
    assert (np.diff(rings).min() > 3 * along[:-1]).all()


def test_noise_is_as_wide_as_said_and_goes_along_the_rays() -> None:
    even = scene("plane", "even", np.random.default_rng(0))
    noise = even.noisy(0.5, np.random.default_rng(1)) - even.clean
    assert noise.std(axis=0) == pytest.approx([0.5 * even.spacing] * 3, rel=0.05)
    assert even.rms(even.noisy(0.5, np.random.default_rng(1))) == pytest.approx(
        0.5 * even.spacing, rel=0.05
    )
    lidar = scene("sphere", "lidar", np.random.default_rng(0))
    assert lidar.rays is not None
    noise = lidar.noisy(2.0, np.random.default_rng(1)) - lidar.clean
    along = np.sum(noise * lidar.rays, axis=1)
    assert np.allclose(along[:, None] * lidar.rays, noise)
    assert along.std() == pytest.approx(2.0 * lidar.spacing, rel=0.05)

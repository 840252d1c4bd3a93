import numpy as np
import pytest

from pointmend.geometry.frames import KNOWN_SPACING, PREFERRED_SPACING, frame_cloud, patch_rotation


def sphere(count: int, radius: float, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((count, 3))
    return np.asarray(radius * x / np.linalg.norm(x, axis=1, keepdims=True))


def test_a_cloud_of_known_spacing_goes_to_the_unit_sphere() -> None:
    points = sphere(10_000, 250.0) + np.array([5e5, 5e6, 1e3])
    frame = frame_cloud(points)
    inside = frame.enter(points)
    assert not frame.by_spacing
    assert np.linalg.norm(inside, axis=1).max() == pytest.approx(1.0, abs=1e-9)
    assert np.abs(frame.leave(inside) - points).max() < 1e-8


@pytest.mark.parametrize("count", [200, 2_000_00])
def test_any_other_cloud_is_brought_to_the_preferred_spacing(count: int) -> None:
    points = sphere(count, 3.0)
    frame = frame_cloud(points)
    assert frame.by_spacing
    assert frame.spacing / frame.scale == pytest.approx(PREFERRED_SPACING)
    assert KNOWN_SPACING[0] < PREFERRED_SPACING < KNOWN_SPACING[1]


def test_a_far_outlier_does_not_decide_the_scale() -> None:
    points = sphere(5_000, 1.0)
    with_outlier = frame_cloud(np.vstack([points, [1e6, 0.0, 0.0]]))
    assert with_outlier.scale < 10.0


def test_one_point_has_a_frame() -> None:
    frame = frame_cloud(np.array([[3.0, 4.0, 5.0]]))
    assert np.array_equal(frame.enter(np.array([[3.0, 4.0, 5.0]])), np.zeros((1, 3)))


@pytest.mark.parametrize("random", [True, False])
def test_a_patch_is_turned_upright(random: bool) -> None:
    rng = np.random.default_rng(0)
    flat = rng.uniform(-1, 1, (400, 3)) * [1.0, 0.6, 0.01]
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    rotation = patch_rotation(flat @ turn.T, rng if random else None)
    assert np.allclose(rotation @ rotation.T, np.eye(3))
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    assert np.abs((flat @ turn.T @ rotation.T)[:, 2]).max() < 0.05


def test_without_randomness_the_turned_patch_does_not_depend_on_how_it_lay() -> None:
    rng = np.random.default_rng(1)
    patch = rng.uniform(-1, 1, (400, 3)) * [1.0, 0.5, 0.05] + [0.1, 0.05, 0.01]
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turn *= np.linalg.det(turn)
    upright = patch @ patch_rotation(patch).T
    again = patch @ turn.T @ patch_rotation(patch @ turn.T).T
    assert np.allclose(upright, again, atol=1e-9)

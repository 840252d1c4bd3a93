import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from pointmend.geometry.spreading import BORDER, LONGEST, NEIGHBOURS, RATE, REACH, spread_evenly

Floats = NDArray[np.float64]


def square(count: int = 2000, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(0.0, 1.0, (count, 2)), np.zeros(count)])


def sphere(count: int = 2000) -> Floats:
    points = np.random.default_rng(1).standard_normal((count, 3))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def unevenness(points: Floats) -> float:
    nearest = cKDTree(points).query(points, k=2)[0][:, 1]
    return float(nearest.std() / nearest.mean())


def one_round_slowly(points: Floats) -> Floats:
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    order = np.argsort(distances, axis=1, kind="stable")[:, : NEIGHBOURS + 1]
    farthest = np.sort(distances, axis=1)[:, NEIGHBOURS]
    moved = points.copy()
    for v, near in enumerate(order):
        reach = REACH * farthest[near].mean()
        push = np.zeros(3)
        for i in near[1:]:
            away = points[v] - points[i]
            far = np.linalg.norm(away)
            if 0.0 < far < reach:
                push += RATE * (reach - far) * away / far
        normal = np.linalg.eigh(np.cov(points[near[1:]].T))[1][:, 0]
        push -= (push @ normal) * normal
        outward = (points[v] - points[near[1:]]).mean(axis=0)
        if np.linalg.norm(outward) > BORDER * distances[v, near[1:]].mean() and push @ outward > 0:
            push -= (push @ outward) * outward / (outward @ outward)
        moved[v] += push * min(1.0, LONGEST * reach / max(float(np.linalg.norm(push)), 1e-300))
    return moved


def test_one_round_is_the_formula_point_by_point() -> None:
    points = sphere(300) + 0.01 * np.random.default_rng(2).standard_normal((300, 3))
    points[:40] = points[40:80] + 1e-3  # a clump, which must not fly apart
    assert np.allclose(spread_evenly(points, 1), one_round_slowly(points), atol=1e-9)
    plate = square(200)
    assert np.allclose(spread_evenly(plate, 1), one_round_slowly(plate), atol=1e-9)


def test_points_lie_more_evenly_and_still_on_their_surface() -> None:
    before, after = sphere(), spread_evenly(sphere(), 5)
    assert unevenness(after) < 0.5 * unevenness(before)
    spacing = np.sqrt(4.0 * np.pi / 2000)
    assert np.abs(np.linalg.norm(after, axis=1) - 1.0).max() < 0.2 * spacing
    flat = spread_evenly(square(), 5)
    assert np.abs(flat[:, 2]).max() < 1e-12


def test_a_surface_does_not_creep_beyond_its_border() -> None:
    after = spread_evenly(square(), 20)
    beyond = np.maximum(-after[:, :2], after[:, :2] - 1.0).max(axis=1)
    spacing = np.sqrt(1.0 / 2000)
    assert beyond.max() < 0.6 * spacing
    assert np.mean(beyond > 0.1 * spacing) < 0.01


def test_the_result_turns_and_grows_with_the_cloud() -> None:
    points = sphere(500)
    turn = Rotation.from_euler("xyz", [0.3, 1.0, -2.0]).as_matrix()
    changed = 7.0 * points @ turn.T + np.array([10.0, -20.0, 5.0])
    expected = 7.0 * spread_evenly(points, 3) @ turn.T + np.array([10.0, -20.0, 5.0])
    assert np.allclose(spread_evenly(changed, 3), expected, atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, NEIGHBOURS])
def test_too_few_points_stay(count: int) -> None:
    points = sphere(100)[:count]
    assert np.array_equal(spread_evenly(points, 5), points)


def test_input_is_not_changed_and_coinciding_points_are_fine() -> None:
    points = np.concatenate([sphere(200), sphere(200)[:50], np.zeros((30, 3))])
    kept = points.copy()
    assert np.isfinite(spread_evenly(points, 3)).all()
    assert np.array_equal(points, kept)

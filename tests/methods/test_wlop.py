import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.methods.method import Task
from pointmend.methods.wlop import NearPairs, Wlop, attraction, average_spacing, repulsion

Float64 = NDArray[np.float64]


def cloud(count: int = 120) -> Float64:
    points = np.random.default_rng(0).random((count, 3))
    points[:, 2] *= 0.05
    return points


def theta(distance: float, radius: float) -> float:
    return float(np.exp(-4.0 * distance**2 / radius**2)) if distance <= radius else 0.0


def test_attraction_and_repulsion_are_the_formulas_pair_by_pair() -> None:
    noisy, radius = cloud(), 0.3
    samples = noisy + 0.01 * np.random.default_rng(1).standard_normal(noisy.shape)
    drawn = attraction(samples, noisy, NearPairs(radius))
    pushed = repulsion(samples, NearPairs(radius))
    gap = np.linalg.norm(samples[:, None] - samples[None], axis=2)
    density = np.array([1.0 + sum(theta(d, radius) for d in row) for row in gap])
    for i in (0, 60, 119):
        weight = np.array([theta(float(np.linalg.norm(samples[i] - p)), radius) for p in noisy])
        assert np.allclose(drawn[i], weight @ noisy / weight.sum())
        others = [j for j in range(120) if j != i and gap[i, j] <= radius]
        push = np.array([density[j] * theta(gap[i, j], radius) / gap[i, j] ** 2 for j in others])
        expected = push @ (samples[i] - samples[others]) / push.sum()
        assert np.allclose(pushed[i], expected)


def test_pairs_are_the_same_whether_searched_again_or_kept() -> None:
    noisy = cloud()
    kept = NearPairs(0.3)
    attraction(noisy, noisy, kept)
    nearby = noisy + 0.02  # within the skin: no new search
    assert np.allclose(attraction(nearby, noisy, kept), attraction(nearby, noisy, NearPairs(0.3)))
    far = noisy + 0.2
    assert np.allclose(attraction(far, noisy, kept), attraction(far, noisy, NearPairs(0.3)))


def test_the_spacing_is_the_mean_over_the_first_ring_and_bounds_outliers() -> None:
    points = cloud()
    distance = np.sort(np.linalg.norm(points[:, None] - points[None], axis=2), axis=1)[:, :7]
    assert average_spacing(points) == pytest.approx(
        np.minimum(distance.mean(axis=1), 3.0 * np.median(distance.mean(axis=1))).mean()
    )
    outlier = np.vstack([points, [[1e6, 0.0, 0.0]]])
    assert average_spacing(outlier) == pytest.approx(average_spacing(points), rel=0.1)


def test_repulsion_keeps_points_apart() -> None:
    points = np.random.default_rng(3).random((1500, 3)) * [1.0, 1.0, 0.01]

    def unevenness(x: Float64) -> float:
        gap = np.sort(np.linalg.norm(x[:, None] - x[None], axis=2), axis=1)[:, 1]
        return float(gap.std() / gap.mean())

    drawn, pushed = (Wlop(repulsion=weight, iterations=10)(Task(points)) for weight in (0.0, 0.45))
    assert unevenness(pushed) < 0.8 * unevenness(drawn)

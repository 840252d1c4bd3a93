import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.denoising.gain import (
    REGION,
    level_of_regions,
    measure_gain,
    noise_around,
    nothing_to_gain,
)
from pointmend.geometry.density import surroundings

Float64 = NDArray[np.float64]
STEP = 0.1


def grid(side: int = 40) -> Float64:
    x, y = np.meshgrid(np.arange(side) * STEP, np.arange(side) * STEP)
    return np.stack([x, y, 0.0 * x], axis=-1).reshape(-1, 3)


def upright(heights: Float64) -> Float64:
    return np.asarray(heights[:, None] * np.array([0.0, 0.0, 1.0]))


def test_noise_of_every_point_for_itself_is_measured_and_may_go() -> None:
    points = grid()
    noise = 0.05 * STEP * np.random.default_rng(0).standard_normal(len(points))
    gain = measure_gain(upright(noise), surroundings(points))
    assert np.median(gain.noise) == pytest.approx(0.05, rel=0.1)
    assert np.median(gain.region) == pytest.approx(0.05, rel=0.1)
    assert np.percentile(gain.agreement, 5) > 3.0
    assert gain.shares().mean() > 0.98


def test_what_neighbours_share_is_shape_and_is_held_back() -> None:
    points = grid()
    wave = 0.05 * STEP * np.sin(points[:, 0] / STEP / 8.0)
    gain = measure_gain(upright(wave), surroundings(points))
    assert np.median(gain.agreement) < 0.5
    assert gain.shares().mean() < 0.05


def test_large_noise_may_go_whatever_neighbours_say() -> None:
    points = grid()
    rng = np.random.default_rng(0)
    shared = 2.0 * STEP * np.sin(points[:, 0] / STEP / 8.0)
    noise = shared + 0.6 * STEP * rng.standard_normal(len(points))
    gain = measure_gain(upright(noise), surroundings(points))
    assert np.median(gain.agreement) < 1.0
    assert gain.shares().mean() > 0.95


def test_an_edge_that_answers_without_noise_does_not_make_a_cloud_noisy() -> None:
    points = grid()
    rng = np.random.default_rng(0)
    quiet = 0.004 * STEP * rng.standard_normal(len(points))
    loud = 0.05 * STEP * rng.standard_normal(len(points))
    scores = upright(np.where(np.abs(points[:, 0] - 2.0) < 3 * STEP, loud, quiet))
    gain = measure_gain(scores, surroundings(points))
    assert gain.noise.max() > 0.03
    assert nothing_to_gain(gain.level)
    assert not nothing_to_gain(measure_gain(upright(loud), surroundings(points)).level)


def test_nothing_depends_on_the_unit_or_the_order() -> None:
    points = grid(20)
    scores = 0.03 * np.random.default_rng(0).standard_normal(points.shape)
    first = measure_gain(scores, surroundings(points))
    second = measure_gain(1000.0 * scores, surroundings(1000.0 * points))
    order = np.random.default_rng(1).permutation(len(points))
    third = measure_gain(scores[order], surroundings(points[order]))
    assert np.allclose(first.shares(), second.shares())
    # On a grid neighbours at equal distance are taken in any order.
    assert np.median(np.abs(first.noise[order] - third.noise)) < 0.05 * np.median(first.noise)


@pytest.mark.parametrize("count", [1, 2, 3, 20])
def test_few_points_and_no_scores(count: int) -> None:
    points = grid(8)[:count]
    gain = measure_gain(np.zeros((count, 3)), surroundings(points))
    assert np.isfinite(gain.noise).all()
    assert not gain.shares().any()
    assert nothing_to_gain(gain.level)
    assert nothing_to_gain(level_of_regions(np.zeros(0)))


def test_noise_around_is_that_of_all_and_more_where_scores_are_longer() -> None:
    points = grid()
    rng = np.random.default_rng(0)
    around = surroundings(points)
    noise = 0.05 * rng.standard_normal(len(points))
    everywhere = noise_around(upright(noise), around, 0.05)
    assert everywhere.min() >= 0.05
    assert everywhere.mean() == pytest.approx(0.05, rel=0.05)
    louder = points[:, 0] > 2.0
    found = noise_around(upright(np.where(louder, 3.0, 1.0) * noise), around, 0.1)
    # Of all points together it is sqrt(5) times the quieter half's, and the louder have 3.
    assert found[points[:, 0] > 3.0].mean() == pytest.approx(0.1 * 3.0 / 5.0**0.5, rel=0.05)
    assert np.all(found[points[:, 0] < 1.0] == 0.1)


def test_noise_around_counts_points_that_are_no_ones_neighbours() -> None:
    rng = np.random.default_rng(1)
    points = grid(20) + 0.05 * STEP * rng.standard_normal((400, 3))
    far = rng.random(400) < 0.1
    points[far, 2] += 3.0 * STEP
    scores = upright(-points[:, 2])
    around = surroundings(points)
    squared = np.sum(scores**2, axis=1)
    heard: list[list[float]] = [[] for _ in points]
    for row, near in enumerate(around.neighbours):
        for neighbour in near:
            heard[neighbour].append(float(squared[row]))
    local = around.smooth(np.array([np.mean(each) for each in heard]), REGION)
    expected = 0.02 * np.sqrt(np.maximum(local / squared.mean(), 1.0))
    assert np.allclose(noise_around(scores, around, 0.02), expected, rtol=1e-12)
    # A mean over neighbours would hardly see the far ones.
    assert around.smooth(squared, REGION).mean() < 0.8 * local.mean()

"""Noise patterns: moments and supports as their formulas say, seeds, levels."""

from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.errors import InputError
from pointmend.evaluation.noise import ANISOTROPY, PATTERNS, Pattern, add_noise
from pointmend.geometry.procedural import torus

Floats = NDArray[np.float64]
COUNT = 200_000

COVARIANCE: dict[Pattern, Floats] = {
    "gaussian": np.eye(3),
    "laplace": 2.0 * np.eye(3),
    "discrete": 0.2 * np.eye(3),
    "anisotropic": np.array([[1, -1 / 2, -1 / 4], [-1 / 2, 1, -1 / 4], [-1 / 4, -1 / 4, 1]]),
    "unidirectional": np.diag([1.0, 0.0, 0.0]),
    "uniform": np.eye(3) / 5.0,
}


def drawn(pattern: Pattern, level: float = 1.0, radius: float = 1.0) -> Floats:
    return add_noise(np.zeros((COUNT, 3)), pattern, level, np.random.default_rng(0), radius)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_mean_and_covariance(pattern: Pattern) -> None:
    noise = drawn(pattern, level=0.02, radius=5.0) / (0.02 * 5.0)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=0.02)
    np.testing.assert_allclose(np.cov(noise.T), COVARIANCE[pattern], atol=0.03, rtol=0.02)


def test_all_six_patterns_are_there() -> None:
    assert set(PATTERNS) == set(COVARIANCE)
    assert np.linalg.eigvalsh(ANISOTROPY).min() > 0.0


def test_laplace_has_heavier_tails_than_gaussian() -> None:
    def kurtosis(x: Floats) -> float:
        return float((x**4).mean() / (x**2).mean() ** 2)

    assert kurtosis(drawn("gaussian")) == pytest.approx(3.0, rel=0.05)
    assert kurtosis(drawn("laplace")) == pytest.approx(6.0, rel=0.1)


def test_discrete_takes_six_steps_or_none() -> None:
    noise = drawn("discrete", level=0.5)
    steps, times = np.unique(noise, axis=0, return_counts=True)
    assert len(steps) == 7
    still = (steps == 0.0).all(axis=1)
    assert times[still][0] / COUNT == pytest.approx(0.4, abs=0.01)
    np.testing.assert_allclose(times[~still] / COUNT, 0.1, atol=0.005)
    np.testing.assert_allclose(np.linalg.norm(steps[~still], axis=1), 0.5)


def test_uniform_fills_a_ball() -> None:
    radius = np.linalg.norm(drawn("uniform", level=0.5), axis=1)
    assert radius.max() <= 0.5
    # The share within half the radius is one eighth of the volume.
    assert np.mean(radius < 0.25) == pytest.approx(1 / 8, abs=0.005)


def test_unidirectional_moves_along_one_axis_only() -> None:
    noise = drawn("unidirectional")
    assert (noise[:, 1:] == 0.0).all()
    assert (noise[:, 0] != 0.0).all()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_level_is_relative_to_the_bounding_sphere(pattern: Pattern) -> None:
    points = 30.0 * torus().vertices + 1000.0
    default = add_noise(points, pattern, 0.01, np.random.default_rng(3))
    explicit = add_noise(points, pattern, 0.01, np.random.default_rng(3), radius=30.0)
    np.testing.assert_allclose(default, explicit, atol=1e-9)
    spread = np.sqrt(np.trace(np.cov((default - points).T)))
    assert spread == pytest.approx(0.3 * np.sqrt(np.trace(COVARIANCE[pattern])), rel=0.05)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_seeds(pattern: Pattern) -> None:
    points = torus(10, 8).vertices
    first, again, other = (
        add_noise(points, pattern, 0.01, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_noise_at_level_zero_and_input_untouched(pattern: Pattern) -> None:
    points = torus(10, 8).vertices
    before = points.copy()
    got = add_noise(points, pattern, 0.0, np.random.default_rng(0))
    np.testing.assert_array_equal(got, points)
    got += 1.0
    add_noise(points, pattern, 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(points, before)


def test_unusable_input_is_refused() -> None:
    points, rng = torus(10, 8).vertices, np.random.default_rng(0)
    with pytest.raises(InputError, match="pattern"):
        add_noise(points, cast(Pattern, "salt"), 0.01, rng)
    with pytest.raises(InputError, match="level"):
        add_noise(points, "gaussian", -0.01, rng)
    with pytest.raises(InputError, match="level"):
        add_noise(points, "gaussian", float("nan"), rng)
    with pytest.raises(InputError, match="N x 3"):
        add_noise(np.zeros((4, 2)), "gaussian", 0.01, rng)

"""Wide noise read off the layer it makes."""

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.denoising.layer import is_wide, layer_of

Floats = NDArray[np.float64]

# Of 8,000 points on a square of side 2.
SPACING = 0.022


def noisy_plane(sigma: float) -> Floats:
    rng = np.random.default_rng(0)
    plane = rng.uniform(-1.0, 1.0, (8_000, 3))
    plane[:, 2] = 0.0
    return plane + sigma * rng.standard_normal(plane.shape)


def all_of(points: Floats) -> NDArray[np.bool_]:
    return np.ones(len(points), dtype=bool)


def test_noise_is_wide_from_most_of_a_spacing_on() -> None:
    assert is_wide(0.8, 1.0)
    assert not is_wide(0.6, 1.0)


def test_the_layer_is_the_noise_less_what_lies_beyond_reach() -> None:
    plane = noisy_plane(0.05)
    found = layer_of([(plane, all_of(plane))], 0.05, SPACING)
    assert found is not None
    assert 0.8 * 0.05 < found < 0.05


@pytest.mark.parametrize("wrong", [0.8, 1.25])
def test_a_wrong_first_guess_matters_less_than_by_half(wrong: float) -> None:
    plane = noisy_plane(0.05)
    right = layer_of([(plane, all_of(plane))], 0.05, SPACING)
    found = layer_of([(plane, all_of(plane))], wrong * 0.05, SPACING)
    assert right is not None
    assert found is not None
    assert abs(np.log(found / right)) < 0.5 * abs(np.log(wrong))


def test_neither_order_nor_division_into_places_matters_much() -> None:
    plane = noisy_plane(0.05)
    whole = layer_of([(plane, all_of(plane))], 0.05, SPACING)
    shuffled = np.random.default_rng(1).permutation(plane)
    assert layer_of([(shuffled, all_of(plane))], 0.05, SPACING) == pytest.approx(whole, rel=1e-9)
    halves = [(plane, plane[:, 0] < 0.0), (plane, plane[:, 0] >= 0.0)]
    assert layer_of(halves, 0.05, SPACING) == pytest.approx(whole, rel=0.03)


def test_points_that_are_not_trusted_lend_their_neighbourhood_only() -> None:
    plane = noisy_plane(0.05)
    thick = noisy_plane(0.2) + np.array([10.0, 0.0, 0.0])
    both = np.concatenate([plane, thick])
    trusted = np.arange(len(both)) < len(plane)
    expected = layer_of([(plane, all_of(plane))], 0.05, SPACING)
    assert layer_of([(both, trusted)], 0.05, SPACING) == pytest.approx(expected, rel=1e-9)


def test_sparse_points_are_looked_at_by_their_spacing() -> None:
    sparse = noisy_plane(0.05)[:400]
    assert layer_of([(sparse, all_of(sparse))], 0.05, 0.0) is None
    found = layer_of([(sparse, all_of(sparse))], 0.05, 0.1)
    assert found is not None
    assert 0.8 * 0.05 < found < 1.1 * 0.05


def test_too_little_says_nothing() -> None:
    plane = noisy_plane(0.05)
    assert layer_of([(plane[:20], all_of(plane[:20]))], 0.05, SPACING) is None
    assert layer_of([(plane, np.zeros(len(plane), dtype=bool))], 0.05, SPACING) is None
    assert layer_of([(plane * 0.0, all_of(plane))], 0.05, SPACING) is None

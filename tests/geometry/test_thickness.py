"""How thick a noisy layer is, against cases whose answer is known."""

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.geometry.thickness import LEAST_POINTS, thickness

Floats = NDArray[np.float64]


def noisy_sheet(sigma: float, seed: int = 0) -> tuple[Floats, Floats]:
    """A plane with noise across it, and those of its points that lie well inside."""
    rng = np.random.default_rng(seed)
    sheet = rng.uniform(-2.0, 2.0, (40_000, 3))
    sheet[:, 2] = sigma * rng.standard_normal(len(sheet))
    inner = sheet[np.abs(sheet[:, :2]).max(axis=1) < 1.0]
    return sheet, inner[:200]


@pytest.mark.parametrize("sigma", [0.02, 0.05, 0.1])
def test_a_noisy_plane_is_as_thick_as_its_noise(sigma: float) -> None:
    sheet, places = noisy_sheet(sigma)
    found = thickness(sheet, places, 5.0 * sigma)
    assert len(found) == len(places)
    assert np.median(found) == pytest.approx(sigma, rel=0.1)


def test_places_off_the_middle_find_it() -> None:
    sheet, places = noisy_sheet(0.05)
    off = places + np.array([0.0, 0.0, 0.1])
    expected = np.median(thickness(sheet, places, 0.2))
    assert np.median(thickness(sheet, off, 0.2)) == pytest.approx(expected, rel=0.05)


def test_it_is_the_least_deviation_in_any_direction() -> None:
    sheet, _ = noisy_sheet(0.05)
    middle = np.array([[0.0, 0.0, 0.0]])
    inside = sheet[np.linalg.norm(sheet - middle, axis=1) < 0.5]
    rng = np.random.default_rng(1)
    directions = rng.standard_normal((2_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    least = (inside @ directions.T).std(axis=0, ddof=1).min()
    assert thickness(sheet, middle, 0.5)[0] == pytest.approx(least, rel=0.05)


def test_it_turns_and_scales_with_the_points() -> None:
    sheet, places = noisy_sheet(0.05)
    turn, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))

    def moved(points: Floats) -> Floats:
        return np.asarray(5.0 * points @ turn.T + [10.0, -20.0, 0.0])

    expected = 5.0 * thickness(sheet, places, 0.2)
    assert thickness(moved(sheet), moved(places), 1.0) == pytest.approx(expected, rel=1e-6)


def test_places_that_see_too_little_are_left_out() -> None:
    points = np.random.default_rng(3).standard_normal((LEAST_POINTS - 1, 3))
    assert len(thickness(points, points, 10.0)) == 0
    assert len(thickness(points, points + 100.0, 1.0)) == 0
    assert len(thickness(points, points[:0], 1.0)) == 0
    same = np.zeros((LEAST_POINTS, 3))
    assert np.array_equal(thickness(same, same[:1], 1.0), [0.0])

"""How far points fill space, against cases whose answer is known."""

import numpy as np
import pytest

from pointmend.geometry.fullness import LEAST_POINTS, fullness


def test_a_plane_is_empty_and_a_cube_is_full() -> None:
    rng = np.random.default_rng(0)
    cube = rng.uniform(-1.0, 1.0, (20_000, 3))
    inner = cube[np.abs(cube).max(axis=1) < 0.7]
    assert fullness(cube, inner, 0.3) == pytest.approx(1 / 3, abs=0.05)
    plane = cube * [1.0, 1.0, 0.0]
    assert fullness(plane, plane[:500], 0.3) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("sigma", [0.02, 0.05, 0.1])
def test_noise_across_a_plane_counts_by_its_share(sigma: float) -> None:
    """Within a radius r of a noisy plane: sigma^2 / (sigma^2 + r^2 / 2), as long as sigma << r."""
    rng = np.random.default_rng(1)
    sheet = rng.uniform(-2.0, 2.0, (40_000, 3)) * [1.0, 1.0, 0.0]
    sheet[:, 2] = sigma * rng.standard_normal(len(sheet))
    inner = sheet[np.abs(sheet[:, :2]).max(axis=1) < 1.2]
    assert fullness(sheet, inner, 0.6) == pytest.approx(sigma**2 / (sigma**2 + 0.18), rel=0.15)


def test_it_turns_and_scales_with_the_points() -> None:
    rng = np.random.default_rng(2)
    points = rng.standard_normal((3_000, 3)) * [1.0, 0.8, 0.2]
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    moved = 5.0 * points @ turn.T + [1e3, -2e3, 0.0]
    expected = fullness(points, points[:100], 0.5)
    assert fullness(moved, moved[:100], 2.5) == pytest.approx(expected, rel=1e-6)


def test_too_few_points_say_nothing() -> None:
    points = np.random.default_rng(3).standard_normal((LEAST_POINTS - 1, 3))
    assert fullness(points, points, 10.0) == 0.0
    assert fullness(np.zeros((20, 3)), np.zeros((20, 3)), 1.0) == 0.0

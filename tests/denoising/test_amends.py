"""What points are owed back, against plain loops, and what it is for."""

import numpy as np
import pytest
import torch

from pointmend.denoising.amends import FULL_UP_TO, Amends, share_in


def test_the_mean_of_the_neighbours_ways_without_ones_own() -> None:
    rng = np.random.default_rng(0)
    way = rng.standard_normal((20, 3))
    neighbours = np.stack([rng.permutation(20)[:6] for _ in range(9)])
    found = Amends(way, 0.25).around(torch.from_numpy(neighbours))
    for row, near in zip(found, neighbours):
        assert np.allclose(row, 0.25 * sum(way[i] for i in near[1:]) / 5)


def test_the_ways_of_some_points() -> None:
    way = np.arange(12.0).reshape(4, 3)
    some = Amends(way, 0.5).of(np.array([2, 0]))
    assert np.array_equal(some.way, way[[2, 0]])
    assert some.share == 0.5
    assert np.array_equal(Amends(way, 0.5).way, way)


def test_what_neighbours_do_not_share_is_not_owed() -> None:
    rng = np.random.default_rng(1)
    noise, together = rng.standard_normal((400, 3)), np.array([0.0, 0.0, 1.0])
    neighbours = torch.arange(400).unsqueeze(0)
    found = Amends(noise + together, 1.0).around(neighbours)
    assert np.allclose(found, together, atol=0.2)


def test_less_is_given_back_in_wider_noise() -> None:
    assert share_in(0.0, 0.2) == share_in(0.5 * FULL_UP_TO, 0.2) == share_in(FULL_UP_TO, 0.2) == 0.2
    assert share_in(2.0 * FULL_UP_TO, 0.2) == pytest.approx(0.05)

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointmend.diffusion.arrangement import (
    arrange,
    arrange_unaligned,
    primary_sigma,
    rms_sigma,
    search_tau,
    spread_times,
)
from pointmend.diffusion.schedule import TRAINING_SCHEDULE


def test_equation_15_is_the_variance_of_the_norm() -> None:
    scores = np.array([[3.0, 0.0, 4.0], [0.0, 1.0, 0.0]])  # norms 5 and 1
    assert primary_sigma(scores) == pytest.approx(2.0)
    assert rms_sigma(scores) == pytest.approx(np.sqrt(13.0))


@given(st.integers(0, 1000))
def test_the_search_finds_the_time_of_its_own_sigma(t: int) -> None:
    assert search_tau(float(TRAINING_SCHEDULE.sigma_bar[t]), TRAINING_SCHEDULE) == t


def test_the_search_saturates_at_both_ends() -> None:
    assert search_tau(1.0, TRAINING_SCHEDULE) == 1000
    assert search_tau(0.0, TRAINING_SCHEDULE) == 0


@given(st.integers(0, 1000), st.integers(1, 40))
def test_times_fall_from_tau_to_zero_without_repeating(tau: int, steps: int) -> None:
    times = spread_times(tau, steps)
    assert times[0] == tau
    assert times[-1] == 0
    assert all(a > b for a, b in pairwise(times))
    if tau >= steps:
        assert len(times) == steps + 1


def test_the_papers_five_steps() -> None:
    assert spread_times(1000, 5) == (1000, 800, 600, 400, 200, 0)
    assert spread_times(1000, 5, bend=2.0) == (1000, 640, 360, 160, 40, 0)
    assert spread_times(3, 5) == (3, 2, 1, 0)
    assert spread_times(0, 5) == (0,)


@pytest.mark.parametrize("sigma", [1e-4, 0.004, 0.02, 0.03])
def test_both_arrangements_start_at_the_noise_level(sigma: float) -> None:
    aligned, free = arrange(sigma, 5), arrange_unaligned(sigma, 5)
    assert aligned.sigmas[0] == pytest.approx(sigma, abs=3e-5)
    assert free.sigmas[0] == pytest.approx(sigma, rel=1e-9)
    assert len(free.times) == 6
    assert aligned.sigmas[-1] == free.sigmas[-1] == 0.0


def test_no_noise_means_nothing_to_do() -> None:
    assert arrange(0.0, 5).times == (0,)
    assert arrange_unaligned(0.0, 5).times == (0,)

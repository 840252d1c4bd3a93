import numpy as np
import pytest

from pointmend.diffusion.schedule import (
    TRAINING_SCHEDULE,
    Schedule,
    diffuse,
    diffuse_generative,
    diffuse_step,
)


def test_the_training_schedule_reaches_three_percent() -> None:
    assert TRAINING_SCHEDULE.sigma_bar[1000] == pytest.approx(0.0316, abs=5e-5)
    assert TRAINING_SCHEDULE.beta[0] == 0.0
    assert TRAINING_SCHEDULE.beta[1000] == 2e-6


def test_step_variances_add_up_to_the_total() -> None:
    total = np.cumsum(TRAINING_SCHEDULE.step_variance)[1:]
    assert np.allclose(total, TRAINING_SCHEDULE.sigma_bar[1:] ** 2, rtol=1e-12, atol=0)


def test_sigma_bar_agrees_with_a_naive_product() -> None:
    schedule = Schedule(steps=7, beta_end=0.3)
    alpha_bar = 1.0
    for t in range(1, 8):
        alpha_bar *= 1.0 - 0.3 * t / 7
        assert schedule.alpha_bar[t] == pytest.approx(alpha_bar, rel=1e-14)
        assert schedule.sigma_bar[t] ** 2 == pytest.approx((1 - alpha_bar) / alpha_bar, rel=1e-13)


def test_the_forward_process_keeps_the_mean_and_has_the_right_spread() -> None:
    x0 = np.full((200_000, 3), [100.0, -3.0, 0.5])
    noise = diffuse(x0, 600, TRAINING_SCHEDULE, np.random.default_rng(0)) - x0
    sigma = TRAINING_SCHEDULE.sigma_bar[600]
    assert np.all(np.abs(noise.mean(axis=0)) < 5 * sigma / np.sqrt(len(x0)))
    assert noise.std() == pytest.approx(sigma, rel=5e-3)


def test_walking_the_chain_gives_the_same_spread_as_jumping() -> None:
    schedule = Schedule(steps=10, beta_end=0.2)
    rng = np.random.default_rng(1)
    x = np.zeros((100_000, 3))
    for t in range(1, 11):
        x = diffuse_step(x, t, schedule, rng)
        assert x.std() == pytest.approx(schedule.sigma_bar[t], rel=1e-2)


def test_the_generative_form_shrinks_the_mean() -> None:
    schedule = Schedule(steps=10, beta_end=0.2)
    x = diffuse_generative(np.full((100_000, 3), 5.0), 10, schedule, np.random.default_rng(2))
    assert x.mean() == pytest.approx(5.0 * np.sqrt(schedule.alpha_bar[10]), rel=1e-3)
    assert x.std() == pytest.approx(np.sqrt(1 - schedule.alpha_bar[10]), rel=1e-2)


def test_diffusing_leaves_its_input_alone() -> None:
    x0 = np.ones((5, 3))
    diffuse(x0, 5, TRAINING_SCHEDULE, np.random.default_rng(0))
    assert np.array_equal(x0, np.ones((5, 3)))

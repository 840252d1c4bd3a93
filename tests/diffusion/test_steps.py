import numpy as np
import pytest

from pointmend.diffusion.arrangement import arrange, arrange_unaligned
from pointmend.diffusion.schedule import TRAINING_SCHEDULE, Schedule, diffuse_generative
from pointmend.diffusion.steps import (
    decaying_steps,
    generative_steps,
    one_step,
    reverse_factor,
    reverse_steps,
    reverse_variance,
)


def paper_factor(schedule: Schedule, t: int, t_next: int, eta: float) -> float:
    """Eq. 6 as printed."""
    a, b = schedule.alpha_bar[t], schedule.alpha_bar[t_next]
    s_eta = eta * schedule.sigma_bar[t_next] ** 2 * (b - a) / ((1 - a) * b)
    return float(1 - np.sqrt((1 - b * (1 + s_eta)) * a / ((1 - a) * b)))


@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("t", "t_next"), [(1000, 800), (400, 399), (70, 3), (9, 8)])
def test_the_factor_is_the_printed_one(t: int, t_next: int, eta: float) -> None:
    expected = paper_factor(TRAINING_SCHEDULE, t, t_next, eta)
    assert reverse_factor(TRAINING_SCHEDULE, t, t_next, eta) == pytest.approx(expected, abs=1e-6)


def test_without_eta_the_factor_is_one_minus_the_ratio_of_sigmas() -> None:
    sigma = TRAINING_SCHEDULE.sigma_bar
    for t, t_next in [(1000, 800), (500, 1), (2, 1), (1, 0)]:
        assert reverse_factor(TRAINING_SCHEDULE, t, t_next) == pytest.approx(
            1 - sigma[t_next] / sigma[t], rel=1e-12
        )


@pytest.mark.parametrize("count", [1, 2, 5, 30])
@pytest.mark.parametrize("sigma", [0.002, 0.01, 0.031])
@pytest.mark.parametrize("aligned", [True, False])
def test_with_the_true_score_the_steps_land_on_the_surface(
    count: int, sigma: float, aligned: bool
) -> None:
    rng = np.random.default_rng(3)
    x0 = rng.standard_normal((50, 3))
    x = x0 + sigma * rng.standard_normal((50, 3))
    plan = (arrange if aligned else arrange_unaligned)(sigma, count)
    for step in reverse_steps(plan.schedule, plan.times):
        x = step.advance(x, x0 - x, rng)
    assert np.abs(x - x0).max() < 1e-12


def test_with_eta_one_every_marginal_is_that_of_the_forward_process() -> None:
    rng = np.random.default_rng(4)
    times = (1000, 800, 600, 400, 200, 0)
    x0 = np.zeros((100_000, 3))
    x = TRAINING_SCHEDULE.sigma_bar[1000] * rng.standard_normal(x0.shape)
    for step, t_next in zip(reverse_steps(TRAINING_SCHEDULE, times, eta=1.0), times[1:]):
        x = step.advance(x, x0 - x, rng)
        assert x.std() == pytest.approx(TRAINING_SCHEDULE.sigma_bar[t_next], rel=1e-2, abs=1e-12)


def test_the_step_variance_vanishes_at_the_end() -> None:
    assert reverse_variance(TRAINING_SCHEDULE, 200, 0) == 0.0
    assert reverse_variance(TRAINING_SCHEDULE, 400, 200) > 0.0


def test_generative_steps_are_equation_17_one_time_at_a_time() -> None:
    schedule = Schedule(steps=50, beta_end=0.02)
    (step,) = generative_steps(schedule, (30, 29))
    z = np.array([[0.3, -1.0, 2.0]])
    x = np.array([[1.0, 2.0, 3.0]])
    beta, root = schedule.beta[30], np.sqrt(1 - schedule.alpha_bar[30])
    expected = (x - beta / root * z) / np.sqrt(1 - beta)
    moved = step.scale * (x + step.factor * (-root * z))
    assert np.allclose(moved, expected, rtol=1e-12)
    assert step.noise == pytest.approx(np.sqrt(beta))


def test_generative_steps_recover_the_scale_of_the_cloud() -> None:
    schedule = Schedule(steps=200, beta_end=2e-3)
    rng = np.random.default_rng(5)
    x0 = np.full((2_000, 3), 2.0)
    x = diffuse_generative(x0, 200, schedule, rng)
    times = tuple(range(200, -1, -1))
    for t, step in zip(times, generative_steps(schedule, times)):
        x = step.advance(x, np.sqrt(schedule.alpha_bar[t]) * x0 - x, rng)
    assert x.mean() == pytest.approx(2.0, rel=1e-3)


def test_fixed_schedules() -> None:
    factors = [s.factor for s in decaying_steps(30)]
    assert factors[0] == 0.2
    assert factors[29] == pytest.approx(0.2 * 0.95**29)
    assert [s.factor for s in one_step()] == [1.0]


def test_advancing_leaves_its_input_alone_and_is_repeatable() -> None:
    x, s = np.ones((4, 3)), np.full((4, 3), 0.5)
    step = reverse_steps(TRAINING_SCHEDULE, (500, 250, 0), eta=0.5)[0]
    first = step.advance(x, s, np.random.default_rng(0))
    assert np.array_equal(first, step.advance(x, s, np.random.default_rng(0)))
    assert np.array_equal(x, np.ones((4, 3)))

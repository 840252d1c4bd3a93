"""Diffusion: the noise schedule and the forward process with scaling elimination (Eq. 1-3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

# Section 4.2: T = 1000 and beta_T = 2e-6, so that sigma_bar covers (0, 0.03] of a unit sphere.
TRAINING_STEPS = 1000
TRAINING_BETA_END = 2e-6


@dataclass(frozen=True)
class Schedule:
    """
    The linear variance schedule {beta_t}, t = 0 ... T, with beta_0 = 0 (Section 4.2).

    Parameters
    ----------
    steps : int
        T, the index of the last step.
    beta_end : float
        beta_T.
    """

    steps: int = TRAINING_STEPS
    beta_end: float = TRAINING_BETA_END

    @cached_property
    def beta(self) -> Float64:
        """beta_t, shape (T + 1,)."""
        return np.linspace(0.0, self.beta_end, self.steps + 1)

    @cached_property
    def _log_alpha_bar(self) -> Float64:
        """log(alpha_bar_t), shape (T + 1,): sums of tiny logarithms lose nothing, products do."""
        return np.cumsum(np.log1p(-self.beta))

    @cached_property
    def alpha_bar(self) -> Float64:
        """alpha_bar_t = prod_{s <= t} (1 - beta_s) (Eq. 3), shape (T + 1,)."""
        return np.exp(self._log_alpha_bar)

    @cached_property
    def sigma_bar(self) -> Float64:
        """sigma_bar_t = sqrt((1 - alpha_bar_t) / alpha_bar_t) (Eq. 3), shape (T + 1,)."""
        return np.sqrt(np.expm1(-self._log_alpha_bar))

    @cached_property
    def step_variance(self) -> Float64:
        """sigma_t^2 = beta_t / alpha_bar_t, the noise one step adds (Eq. 2), shape (T + 1,)."""
        return self.beta / self.alpha_bar


TRAINING_SCHEDULE = Schedule()


def diffuse(x0: Float64, t: int, schedule: Schedule, rng: np.random.Generator) -> Float64:
    """
    Draw x^t ~ q(x^t | x^0) = N(x^0, sigma_bar_t^2 I) (Eq. 1): no scaling, the mean stays.

    Parameters
    ----------
    x0 : (N, 3) clean points.
    t : time, 0 <= t <= T.

    Returns
    -------
    (N, 3) noisy points.
    """
    sigma_bar = float(schedule.sigma_bar[t])
    return x0 + sigma_bar * rng.standard_normal(x0.shape)


def diffuse_step(x: Float64, t: int, schedule: Schedule, rng: np.random.Generator) -> Float64:
    """
    Draw x^t ~ q(x^t | x^{t-1}) = N(x^{t-1}, beta_t / alpha_bar_t I) (Eq. 2).

    Parameters
    ----------
    x : (N, 3) the points x^{t-1}.

    Returns
    -------
    (N, 3) the points x^t.
    """
    sigma = float(np.sqrt(schedule.step_variance[t]))
    return x + sigma * rng.standard_normal(x.shape)


def diffuse_generative(
    x0: Float64, t: int, schedule: Schedule, rng: np.random.Generator
) -> Float64:
    """
    Draw x^t = sqrt(alpha_bar_t) x^0 + sqrt(1 - alpha_bar_t) z: DDPM's scaled form (GDM ablation).

    Parameters
    ----------
    x0 : (N, 3) clean points.

    Returns
    -------
    (N, 3) noisy points, shrunk towards the origin by sqrt(alpha_bar_t).
    """
    alpha_bar = float(schedule.alpha_bar[t])
    return math.sqrt(alpha_bar) * x0 + math.sqrt(1.0 - alpha_bar) * rng.standard_normal(x0.shape)

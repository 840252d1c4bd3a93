"""Diffusion: the reverse process, what one step does to the points (Eq. 4-7, 17, SBD's decay)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .schedule import Schedule

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """
    One update x <- scale * (x + factor * s) + noise * z, z ~ N(0, I).

    Attributes
    ----------
    time : float
        t / tau in [0, 1], what the network is told.
    factor : float
        How much of the score s is walked.
    noise : float
        Standard deviation of the fresh noise (0 for deterministic sampling).
    scale : float
        1 for the mean-preserving process; DDPM's 1 / sqrt(alpha) otherwise.
    """

    time: float
    factor: float
    noise: float = 0.0
    scale: float = 1.0

    def advance(self, x: Float64, score: Float64, rng: np.random.Generator) -> Float64:
        """
        Take the step.

        Parameters
        ----------
        x, score : (N, 3) positions and their scores s(x).

        Returns
        -------
        (N, 3) new positions.
        """
        moved = self.scale * (x + self.factor * score)
        if self.noise > 0.0:
            moved = moved + self.noise * rng.standard_normal(x.shape)
        return moved


def reverse_variance(schedule: Schedule, t: int, t_next: int) -> float:
    """Sigma of the reverse chain (below Eq. 6), from time t to t_next = t - Delta."""
    a_t, a_next = schedule.alpha_bar[t], schedule.alpha_bar[t_next]
    return float(schedule.sigma_bar[t_next] ** 2 * (a_next - a_t) / ((1.0 - a_t) * a_next))


def reverse_factor(schedule: Schedule, t: int, t_next: int, eta: float = 0.0) -> float:
    """
    How much of the score one reverse step walks (Eq. 6; Eq. 7 for eta = 0).

    The paper's 1 - sqrt((1 - a'(1 + S)) a / ((1 - a) a')), with a = alpha_bar_t and
    a' = alpha_bar_{t-Delta}, is written with sigma_bar^2 = (1 - a) / a, because 1 - a cancels
    twelve digits for small t: 1 - sqrt(sigma_bar'^2 - S) / sigma_bar.
    """
    sigma_eta = eta * reverse_variance(schedule, t, t_next) if eta > 0.0 else 0.0
    remaining = schedule.sigma_bar[t_next] ** 2 - sigma_eta
    return float(1.0 - np.sqrt(max(remaining, 0.0)) / schedule.sigma_bar[t])


def reverse_steps(schedule: Schedule, times: Sequence[int], eta: float = 0.0) -> list[Step]:
    """
    The steps of Alg. 2 through the given times (Eq. 6, Eq. 7 when eta = 0).

    Parameters
    ----------
    times : decreasing times tau = t_L > ... > t_0 = 0; a single time means nothing to do.
    eta : 0 deterministic ... 1 the full DDPM noise.
    """
    tau = times[0]
    return [
        Step(
            time=t / tau,
            factor=reverse_factor(schedule, t, t_next, eta),
            noise=float(np.sqrt(eta * reverse_variance(schedule, t, t_next))) if eta > 0 else 0.0,
        )
        for t, t_next in pairwise(times)
    ]


def generative_steps(schedule: Schedule, times: Sequence[int]) -> list[Step]:
    """
    The steps of the GDM ablation (Eq. 17), on DDPM's scaled clouds.

    Eq. 17 is written for the predicted noise z; here the network predicts s = -sigma z with
    sigma = sqrt(1 - alpha_bar_t), so x - beta / sqrt(1 - alpha_bar_t) z becomes
    x + beta / (1 - alpha_bar_t) s. For Delta > 1, alpha is the product over the steps skipped
    (Delta = 1 is Eq. 17 to the letter). The last step adds no noise, as usual for DDPM.
    """
    tau = times[0]
    steps = []
    for t, t_next in pairwise(times):
        alpha = schedule.alpha_bar[t] / schedule.alpha_bar[t_next]
        beta = 1.0 - alpha
        steps.append(
            Step(
                time=t / tau,
                factor=float(beta / (1.0 - schedule.alpha_bar[t])),
                noise=float(np.sqrt(beta)) if t_next > 0 else 0.0,
                scale=float(1.0 / np.sqrt(alpha)),
            )
        )
    return steps


def one_step() -> list[Step]:
    """The OneStep ablation: the whole score at once."""
    return [Step(time=1.0, factor=1.0)]


def decaying_steps(count: int, alpha: float = 0.2, decay: float = 0.95) -> list[Step]:
    """
    SBD's fixed schedule alpha * decay^l, l = 0 ... count - 1 (the FixedSched ablations).

    The network still wants a relative time; it falls linearly, as the adaptive one's does.
    """
    return [Step(time=1.0 - i / count, factor=alpha * decay**i) for i in range(count)]

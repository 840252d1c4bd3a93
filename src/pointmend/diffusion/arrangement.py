"""Diffusion: adaptive schedules, from noisy scores to the times of the steps (Eq. 15-16)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .schedule import TRAINING_SCHEDULE, Schedule

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Arrangement:
    """
    An arranged schedule: which times of which schedule the sampler visits.

    Attributes
    ----------
    schedule : Schedule
        The training schedule, or one made for this cloud (unaligned variant).
    times : tuple of int
        tau = t_L > ... > t_0 = 0; just (0,) when there is no noise to remove.
    """

    schedule: Schedule
    times: tuple[int, ...]

    @property
    def sigmas(self) -> tuple[float, ...]:
        """sigma_bar at each time."""
        return tuple(float(self.schedule.sigma_bar[t]) for t in self.times)


def primary_sigma(scores: Float64) -> float:
    """
    Primary guess of the noise level, to the letter: sigma^2 = Var(||s||) (Eq. 15).

    Parameters
    ----------
    scores : (N, 3) scores of the noisy cloud, all patches together.
    """
    return float(np.sqrt(np.var(np.linalg.norm(scores, axis=1))))


def rms_sigma(scores: Float64) -> float:
    """
    Root mean square of ||s||: the length of the step to the surface, not its spread.

    Parameters
    ----------
    scores : (N, 3) scores of the noisy cloud.
    """
    return float(np.sqrt(np.mean(np.sum(scores**2, axis=1))))


def search_tau(sigma: float, schedule: Schedule) -> int:
    """tau = argmin_t |sigma_bar_t^2 - sigma^2| over the training schedule (Eq. 16)."""
    return int(np.argmin(np.abs(schedule.sigma_bar**2 - sigma**2)))


def spread_times(tau: int, steps: int, bend: float = 1.0) -> tuple[int, ...]:
    """
    Round(tau (l / L)^bend) for l = L ... 0, equal neighbours merged.

    Without a bend it is the paper's (Alg. 2, lines 5 and 8). A tau below L cannot hold L different
    times; a repeated time would be a step of length zero.
    """
    times = [math.floor(level**bend * tau / steps**bend + 0.5) for level in range(steps, -1, -1)]
    return tuple(dict.fromkeys(times))


def arrange(
    sigma: float, steps: int, schedule: Schedule = TRAINING_SCHEDULE, bend: float = 1.0
) -> Arrangement:
    """The adaptive schedule, aligned to the training schedule (Section 4.3)."""
    return Arrangement(schedule, spread_times(search_tau(sigma, schedule), steps, bend))


def arrange_unaligned(sigma: float, steps: int) -> Arrangement:
    """
    The adaptive schedule without alignment (appendix, "More Discussion on Schedule Arrangement").

    beta_tau is searched in R+ for a linear schedule of its own, {0, ..., beta_tau} in L steps,
    whose total noise is sigma. The paper stops at |difference| < 1e-5; bisection costs nothing
    more to go to the end.
    """
    if sigma <= 0.0:
        return Arrangement(Schedule(steps, 0.0), (0,))
    low, high = 0.0, 1.0 - 1e-12
    for _ in range(200):
        middle = 0.5 * (low + high)
        if Schedule(steps, middle).sigma_bar[-1] < sigma:
            low = middle
        else:
            high = middle
    return Arrangement(Schedule(steps, high), tuple(range(steps, -1, -1)))

"""Denoising: the two functions most users need, with the shipped model."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from numpy.typing import ArrayLike

from .algorithm import Progress
from .denoiser import Denoiser, NoiseEstimate, Points, Result


@lru_cache(maxsize=1)
def _default_denoiser() -> Denoiser:
    """The shipped model, loaded once."""
    return Denoiser.load("default")


def denoise(
    points: Points,
    steps: int = 5,
    eta: float = 0.0,
    sigma: float | None = None,
    strength: float = 1.0,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    max_displacement: float | None = None,
    careful: bool = True,
    ignore: ArrayLike | None = None,
    outliers: float | None = None,
    spread: bool = False,
) -> Result:
    """
    Denoise a cloud (N, 3) with the shipped model; see `Denoiser.denoise`.

    Examples
    --------
    >>> import numpy as np, pointmend
    >>> result = pointmend.denoise(np.random.rand(500, 3))
    >>> result.points.shape
    (500, 3)
    """
    return _default_denoiser().denoise(
        points,
        steps,
        eta,
        sigma,
        strength,
        seed,
        progress,
        max_displacement,
        careful,
        ignore,
        outliers,
        spread,
    )


def estimate_noise(points: Points) -> NoiseEstimate:
    """Noise level and spacing of a cloud (N, 3) by the shipped model."""
    return _default_denoiser().estimate_noise(points)

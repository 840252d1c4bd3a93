"""Denoising: what a user chooses about a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pointmend.errors import InputError


@dataclass(frozen=True)
class Settings:
    """
    What a user chooses about a run; lengths in input units.

    Attributes
    ----------
    steps, eta, seed : of the sampler.
    sigma : the noise level when it is known.
    strength : share of the way to go.
    max_displacement : how far a point may go; by default five times the noise.
    careful : leave points where they are where there is nothing to gain.
    outliers : flag points this many times farther from others than is usual among these; they
        neither move nor pull others. None flags nothing.
    spread : let points slide along the surface until they lie evenly on it.
    local_noise : every tile reads the noise off its own points, instead of one level for all.
    """

    steps: int = 5
    eta: float = 0.0
    sigma: float | None = None
    strength: float = 1.0
    seed: int = 0
    max_displacement: float | None = None
    careful: bool = True
    outliers: float | None = None
    spread: bool = False
    local_noise: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"steps is {self.steps}; at least 1 is needed")
        if not 0.0 <= self.eta <= 1.0:
            raise InputError(f"eta is {self.eta}; it lies between 0 and 1")
        if not 0.0 <= self.strength <= 1.0:
            raise InputError(f"strength is {self.strength}; it lies between 0 and 1")
        if self.sigma is not None and not (np.isfinite(self.sigma) and self.sigma >= 0.0):
            raise InputError(f"sigma is {self.sigma}; a noise level is a number of at least 0")
        if self.max_displacement is not None and not self.max_displacement >= 0.0:
            raise InputError(
                f"max_displacement is {self.max_displacement}; a length of at least 0 is needed"
            )
        if self.outliers is not None and not self.outliers > 1.0:
            raise InputError(f"outliers is {self.outliers}; a factor above 1 is needed")

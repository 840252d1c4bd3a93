"""Denoising: do no harm; where moving points gains something, told by the scores themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.density import Surroundings

Float64 = NDArray[np.float64]

SMOOTHING = 2
REGION = 16

# All three from the scenes of the do-no-harm table (docs/scans.md): below the first level, in
# local spacings, scores come from the arrangement of the points, not from noise; above the last
# one they are noise whatever neighbours say; in between neighbours that agree tell shape.
LEAST_NOISE = (0.012, 0.02)
AGREEMENT = (1.5, 3.0)
CERTAIN_NOISE = (0.25, 0.4)


@dataclass(frozen=True)
class Gain:
    """
    What the scores of a noisy cloud say about noise and shape.

    Noise falls on every point by itself; what a network gets wrong about the shape (the pull
    inwards at an edge or a scan line) it gets wrong for neighbours alike. So the part of the
    scores that neighbours do not share is noise to be gained, and the part they share is harm.

    Attributes
    ----------
    noise : (N,) RMS of the part neighbours do not share, in local spacings.
    region : (N,) the same over a wider region, as its quietest points have it.
    agreement : (N,) noise over the RMS of what neighbours share.
    """

    noise: Float64
    region: Float64
    agreement: Float64

    @property
    def level(self) -> float:
        """The noise level that three quarters of the regions stay below, in local spacings."""
        return level_of_regions(self.region)

    def shares(self) -> Float64:
        """The share (N,) of its way that each point may go: 0 where there is nothing to gain."""
        sure = np.maximum(_ramp(self.noise, CERTAIN_NOISE), _ramp(self.agreement, AGREEMENT))
        return sure * _ramp(self.region, LEAST_NOISE)


def level_of_regions(region: Float64) -> float:
    """One noise level for a cloud, from those of the regions (N,) around its points."""
    return float(np.percentile(region, 75.0)) if len(region) else 0.0


def nothing_to_gain(level: float) -> bool:
    """Whether a cloud of this `Gain.level` is as clean as the network can tell."""
    return level < LEAST_NOISE[1]


def noise_around(scores: Float64, around: Surroundings, sigma: float) -> Float64:
    """
    The noise around each point, (N,): sigma, and more where scores are longer than elsewhere.

    Along a scanner's rays noise is wider across what faces it than across the rest. Told a mean, a
    network takes what is wider than it for two sheets.

    Parameters
    ----------
    scores : (N, 3) of the noisy cloud.
    sigma : the noise of all of it.
    """
    squared = np.sum(scores**2, axis=1)
    # Points far off the surface are hardly anyone's neighbours. So each tells its neighbours first,
    # else a mean over neighbours would leave out those that noise moved most.
    near = around.neighbours
    told = np.bincount(near.ravel(), np.repeat(squared, near.shape[1]), len(squared))
    local = around.smooth(told / np.bincount(near.ravel(), minlength=len(squared)), REGION)
    mean = max(float(squared.mean()), np.finfo(np.float64).tiny)
    return sigma * np.sqrt(np.maximum(local / mean, 1.0))


def measure_gain(scores: Float64, around: Surroundings) -> Gain:
    """
    Tell noise from shape.

    Parameters
    ----------
    scores : (N, 3) of the noisy cloud.
    around : the surroundings of its points, in the same unit.
    """
    neighbours = around.neighbours
    k = neighbours.shape[1]
    shared = scores[neighbours].mean(axis=1)
    squared = np.sum(scores**2, axis=1)[neighbours].mean(axis=1)
    length = np.sum(shared**2, axis=1)
    own = np.maximum(squared - length, 0.0) * k / (k - 1)
    # A mean of k independent scores is not zero: what it would be by chance is not agreement.
    common = np.maximum(length - own / k, 0.0)
    own, common = around.smooth(own, SMOOTHING), around.smooth(common, SMOOTHING)
    tiny = np.finfo(np.float64).tiny
    noise = np.sqrt(own) / np.maximum(around.spacing, tiny)
    # Edges answer without noise too: a region is as noisy as its quietest points (harmonic mean).
    region = 1.0 / around.smooth(1.0 / np.maximum(noise, 1e-9), REGION)
    return Gain(noise, region, np.sqrt(own) / np.maximum(np.sqrt(common), np.sqrt(tiny)))


def _ramp(values: Float64, limits: tuple[float, float]) -> Float64:
    """0 below the first limit, 1 above the second, a straight line between."""
    low, high = limits
    return np.clip((values - low) / (high - low), 0.0, 1.0)

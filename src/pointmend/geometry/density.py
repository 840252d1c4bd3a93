"""Geometry: how densely points lie around each point, and levels of density worked on apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .neighbours import pad_by_last

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

AROUND = 16
SMOOTHING = 4

# Spacings within one level differ by up to this factor, which a network trained on clouds of 10k
# to 50k points takes in its stride; a level below this share of a cloud joins its neighbour.
LEVEL_FACTOR = 4.0
LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Surroundings:
    """
    The nearest points of every point of a cloud.

    Attributes
    ----------
    neighbours : (N, 16) rows, nearest first, the point itself among them.
    spacing : (N,) local spacing: the side of the square that each of them has for itself. On
        scan lines it is the spacing that the area would have if points lay evenly on it, as far
        as 16 points can tell.
    """

    neighbours: Int64
    spacing: Float64

    def smooth(self, values: Float64, walks: int) -> Float64:
        """The mean of values (N,) over neighbours, again and again: it spreads like heat."""
        for _ in range(walks):
            values = values[self.neighbours].mean(axis=1)
        return values


def surroundings(points: Float64) -> Surroundings:
    """
    Look around every point.

    Parameters
    ----------
    points : (N, 3) distinct, N >= 1, of any offset.
    """
    centred = points - points.mean(axis=0)
    k = min(AROUND, len(points))
    distance, index = cKDTree(centred).query(centred, k=k)
    neighbours = pad_by_last(np.asarray(index, dtype=np.int64).reshape(len(points), k), AROUND)
    around = Surroundings(neighbours, spacing_from(distance.reshape(len(points), k)))
    if k < 2:
        return around
    # By logarithms, so that one far point does not spread its distance over the others.
    return Surroundings(neighbours, np.exp(around.smooth(np.log(around.spacing), SMOOTHING)))


def spacing_from(distance: Float64) -> Float64:
    """Local spacing (Q,) from the distances (Q, k) to the k nearest points, farthest last."""
    return np.asarray(distance[:, -1] * np.sqrt(np.pi / distance.shape[1]))


def level_of(spacing: Float64, reference: float) -> Int64:
    """The density level (N,) of local spacings (N,): 0 around the reference, coarser is more."""
    if reference <= 0.0:
        return np.zeros(len(spacing), dtype=np.int64)
    with np.errstate(divide="ignore"):
        level = np.rint(np.log(spacing / reference) / np.log(LEVEL_FACTOR))
    return np.asarray(np.clip(level, -20, 20).astype(np.int64))


def common_levels(levels: Int64) -> tuple[int, ...]:
    """The levels that at least a hundredth of the points have, ascending; there is always one."""
    found, counts = np.unique(levels, return_counts=True)
    common = found[counts >= LEAST_SHARE * len(levels)]
    return tuple(int(level) for level in common)


def nearest_level(levels: Int64, common: Sequence[int]) -> Int64:
    """Each level (N,) replaced by the nearest of the common ones (the finer of two)."""
    choices = np.array(common, dtype=np.int64)
    result: Int64 = choices[np.abs(levels[:, None] - choices).argmin(axis=1)]
    return result

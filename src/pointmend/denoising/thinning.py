"""Denoising: where noise is wide against the spacing, a cloud is scored in thinner parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]

# The network looks at a number of neighbours. Where noise reaches across more of them than it sees,
# it cannot tell noise from shape; in every fifth point it sees five times as much of the surface.
# Within wide noise points fill a volume, so the number that noise of sigma reaches across grows
# with the third power of sigma over the distance to the nearest point. Chosen on validation shapes
# (training/LOG.md): at 50,000 points and 3 % noise there are four or five parts, at 10,000 points
# and 3 % one or two.
POINTS_PER_PART = 3.0
MOST_PARTS = 5

_ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


def parts_for(sigma: float, spacing: float) -> int:
    """Into how many parts a cloud should be divided: 1 leaves it whole. Any one unit of length."""
    if not spacing > 0.0:
        return 1
    return int(np.clip(round((sigma / spacing) ** 3 / POINTS_PER_PART), 1, MOST_PARTS))


def lots_of(points: Float64) -> UInt64:
    """
    A number drawn for every point from its coordinates alone: (N, 3) -> (N,).

    So a point belongs to the same part whatever the order of the points, and in every tile.
    """
    bits = np.ascontiguousarray(points, dtype=np.float64).view(np.uint64) * _ODD
    mixed = bits[:, 0] ^ (bits[:, 1] >> np.uint64(7)) ^ (bits[:, 2] >> np.uint64(13))
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _ODD[0]
    return np.asarray(mixed >> np.uint64(33))


@dataclass(frozen=True)
class Thinning:
    """
    What decides the parts of a cloud.

    Attributes
    ----------
    points : (N, 3) as the user gave them, which are the same in every tile.
    spacing : typical distance to the nearest point, in the network's frame.
    """

    points: Float64
    spacing: float

    def parts(self, sigma: float) -> Int64 | None:
        """The part (N,) of every point while noise of sigma is left; None for a whole cloud."""
        parts = parts_for(sigma, self.spacing)
        if parts == 1:
            return None
        return (lots_of(self.points) % np.uint64(parts)).astype(np.int64)


def score_in_parts(x: Float64, part: Int64, score: Callable[[Int64], Float64]) -> Float64:
    """
    Scores of points, each seen among those of its own part.

    Parameters
    ----------
    x : (N, 3)
    part : (N,) number of each point's part.
    score : what gives the scores (n, 3) of the points of some rows (n,), seen by themselves.

    Returns
    -------
    (N, 3)
    """
    scores = np.zeros_like(x)
    for number in np.unique(part):
        rows = np.flatnonzero(part == number)
        scores[rows] = score(rows)
    return scores

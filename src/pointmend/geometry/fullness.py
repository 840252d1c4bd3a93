"""Geometry: whether points lie on a sheet or fill space, at a given distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .balls import principal_variances

Float64 = NDArray[np.float64]

# Places looked at, and the fewest points around one that say anything.
PLACES = 600
LEAST_POINTS = 8


def fullness(points: Float64, at: Float64, radius: float) -> float:
    """
    How far points fill space: 0 on a plane, towards 1/3 in a ball full of points.

    The least eigenvalue of the covariance within a radius over the sum of all three, the median
    over places.

    Parameters
    ----------
    points : (N, 3).
    at : (M, 3) places to look at; some hundreds of them, evenly through their order, when there are
        more.
    radius : how far to look.
    """
    places = at[:: max(1, len(at) // PLACES)]
    balls = cKDTree(points).query_ball_point(places, radius)
    spread = principal_variances(points, balls, LEAST_POINTS)
    shares = spread[:, 0] / np.maximum(spread.sum(axis=1), 1e-300)
    return float(np.median(shares)) if len(shares) else 0.0

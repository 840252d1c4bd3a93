"""Geometry: how thick a layer the points of a noisy surface form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .balls import principal_variances

Float64 = NDArray[np.float64]

# A ball with fewer points says nothing. Since a noisy point lies anywhere in its layer, the ball
# around it is moved to the middle of the points in it, so many times.
LEAST_POINTS = 12
MOVES = 2


def thickness(points: Float64, at: Float64, radius: float) -> Float64:
    """
    The least standard deviation of the points around each of some places, in any direction: (m,).

    Across a flat layer of Gaussian noise it is sigma, less what lies outside the ball. Places with
    too few points around them are left out.

    Parameters
    ----------
    points : (N, 3).
    at : (M, 3) places to look at, m of which see enough.
    radius : how far to look.
    """
    tree = cKDTree(points)
    middles = at.reshape(-1, 3)
    for _ in range(MOVES):
        balls = tree.query_ball_point(middles, radius)
        means = [points[rows].mean(axis=0) for rows in balls if rows]
        middles = np.reshape(means, (-1, 3))
    balls = tree.query_ball_point(middles, radius)
    return np.sqrt(principal_variances(points, balls, LEAST_POINTS)[:, 0])

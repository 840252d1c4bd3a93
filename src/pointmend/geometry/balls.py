"""Geometry: how the points within a distance of some places are spread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


def principal_variances(
    points: Float64, balls: Iterable[Sequence[int]], least_points: int
) -> Float64:
    """
    The variances of the points in balls along their principal axes: (m, 3), the least first.

    Parameters
    ----------
    points : (N, 3).
    balls : rows of the points in each; those with fewer than `least_points` are left out.
    """
    covariances = []
    for rows in balls:
        if len(rows) >= least_points:
            offsets = points[rows]
            offsets = offsets - offsets.mean(axis=0)
            covariances.append(offsets.T @ offsets / (len(rows) - 1))
    if not covariances:
        return np.empty((0, 3))
    # Of one plane exactly, rounding makes the least variance negative.
    return np.maximum(np.linalg.eigvalsh(np.stack(covariances)), 0.0)

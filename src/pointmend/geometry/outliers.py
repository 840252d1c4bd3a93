"""Geometry: points that lie much farther from the others than these do from one another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Float64 = NDArray[np.float64]

AROUND = 16
FACTOR = 3.0


def find_outliers(points: Float64, factor: float = FACTOR) -> NDArray[np.bool_]:
    """
    Tell which points are isolated, judged by their own neighbours so that density may vary.

    A point is an outlier if its mean distance to its 16 nearest points is more than `factor` times
    what is usual (the median) among these points.

    Parameters
    ----------
    points : (N, 3) finite, of any offset.
    factor : above 1; smaller flags more.

    Returns
    -------
    (N,)
    """
    if len(points) < 3:
        return np.zeros(len(points), dtype=bool)
    centred = points - points.mean(axis=0)
    distance, index = cKDTree(centred).query(centred, k=min(AROUND + 1, len(points)))
    mean = distance[:, 1:].mean(axis=1)
    usual = np.median(mean[index[:, 1:]], axis=1)
    result: NDArray[np.bool_] = mean > factor * usual
    return result

"""Geometry: points in an order in which neighbours in space are neighbours in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

BITS = 16

# Beyond this the square of a distance is no number any more.
LARGEST = 1e150


def valid_rows(points: Float64) -> NDArray[np.bool_]:
    """Which points (N, 3) can be reckoned with: neither NaN nor infinite, nor nearly so."""
    return np.asarray((np.abs(points) < LARGEST).all(axis=1))


def morton_order(points: Float64) -> Int64:
    """
    The order of points along a Morton (Z) curve through their bounding box.

    Parameters
    ----------
    points : (N, 3) finite.

    Returns
    -------
    (N,) indices: points[order] runs along the curve.
    """
    if len(points) == 0:
        return np.zeros(0, dtype=np.int64)
    low = points.min(axis=0)
    size = float((points - low).max()) or 1.0
    cells = ((points - low) / size * (2**BITS - 1)).astype(np.uint64)
    code = np.zeros(len(points), dtype=np.uint64)
    for bit in range(BITS):
        for axis in range(3):
            digit = (cells[:, axis] >> np.uint64(bit)) & np.uint64(1)
            code |= digit << np.uint64(3 * bit + axis)
    return np.argsort(code, kind="stable")


def distinct_points(points: Float64) -> tuple[Float64, Int64]:
    """
    Points without repetition, in Morton order.

    Parameters
    ----------
    points : (N, 3) finite.

    Returns
    -------
    distinct : (D, 3), in an order that does not depend on that of the points.
    copies : (N,) such that distinct[copies] equals points.
    """
    sorted_once, copies = np.unique(points, axis=0, return_inverse=True)
    order = morton_order(sorted_once)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return sorted_once[order], place[copies.reshape(-1)]

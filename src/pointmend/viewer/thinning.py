"""Viewer: which points of a large cloud are shown, and where on the stage they stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Float64 = NDArray[np.float64]
Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]

# A browser turns this many points smoothly, and a screen has hardly more room for them.
SHOWN_POINTS = 300_000

# Points are sized by the distance of so many of them to their sixth neighbour, the usual number
# around a point of a surface.
_SIZED_BY = 20_000
_AROUND = 6
_CLOSING = 0.8

# A few stray points far away must not shrink the scan to a dot.
_STRAY_PERCENT = 0.5
# Coordinates may be any number a file can hold, whose square nobody can.
_FARTHEST = 1e4


def shown_rows(positions: Float64, limit: int = SHOWN_POINTS) -> Int64:
    """
    Which points stand for a cloud on the screen: always the same, in their order.

    They are drawn at random, because every so many-th point would show stripes in scans that are
    stored line by line.

    Parameters
    ----------
    positions : (N, 3); rows with NaN or infinity are never shown.
    limit : how many there are at most.

    Returns
    -------
    (M,) row numbers, rising.
    """
    finite = np.flatnonzero(np.isfinite(positions).all(axis=1))
    if len(finite) <= limit:
        return finite
    chosen = np.random.default_rng(0).choice(len(finite), limit, replace=False, shuffle=False)
    return finite[np.sort(chosen)]


def closing_radius(points: Float64) -> float:
    """
    How large to draw points so that a surface closes up, be they spread evenly or at random.

    Parameters
    ----------
    points : (M, 3) finite.
    """
    stride = max(1, len(points) // _SIZED_BY)
    some = points[::stride]
    if len(some) < 2:
        return 0.0
    farthest = min(_AROUND, len(some) - 1)
    reach = cKDTree(some).query(some, k=[farthest + 1])[0][:, 0]
    # Of a surface, every so many-th point is farther from the others by the root of that.
    return float(_CLOSING * np.median(reach) / np.sqrt(stride))


@dataclass(frozen=True)
class Place:
    """
    How scan coordinates become coordinates of the stage: moved to the middle, scaled to 1.

    Browsers compute in single precision, which cannot hold the millimetres of a georeferenced
    scan; relative to the middle it can.

    Attributes
    ----------
    centre : (3,) of the scan, in its units.
    radius : of the scan, in its units.
    """

    centre: Float64
    radius: float

    @classmethod
    def around(cls, points: Float64) -> Place:
        """The place of finite points (M, 3), without a few stray ones."""
        if len(points) == 0:
            return cls(np.zeros(3), 1.0)
        ends = (_STRAY_PERCENT, 100.0 - _STRAY_PERCENT)
        low, high = np.percentile(points, ends, axis=0, method="nearest")
        # Halves are added, because the sum of two huge coordinates may be infinite.
        radius = float(np.linalg.norm(0.5 * high - 0.5 * low))
        usable = np.isfinite(radius) and radius > 0.0
        return cls(0.5 * low + 0.5 * high, radius if usable else 1.0)

    def scaled(self, points: Float64) -> Float64:
        """Points (M, 3) of the scan in radii from its centre; stray ones are kept near."""
        away = points - self.centre
        return np.nan_to_num(np.clip(away / self.radius, -_FARTHEST, _FARTHEST))

    def on_stage(self, points: Float64) -> Float32:
        """Points (M, 3) of the scan where the browser draws them."""
        return self.scaled(points).astype(np.float32)

"""Figures for real scans, whose true surface nobody knows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.geometry.neighbours import typical_spacing

from .metrics import spacing_variation

Float64 = NDArray[np.float64]

PLANE_NEIGHBOURS = 24


@dataclass(frozen=True)
class ScanFigures:
    """
    What can be said about a result without a reference, lengths in the units of the scan.

    Attributes
    ----------
    residuals : (N,) RMS distance of every point's neighbours to their plane.
    moved_rms, moved_percentile_95, moved_largest : displacements.
    spacing : median distance to the nearest neighbour.
    spacing_variation : its unevenness.
    """

    residuals: Float64
    moved_rms: float
    moved_percentile_95: float
    moved_largest: float
    spacing: float
    spacing_variation: float

    @property
    def residual(self) -> float:
        """Median over the points."""
        return float(np.median(self.residuals))


def scan_figures(before: Float64, after: Float64) -> ScanFigures:
    """
    Compare a scan before and after denoising.

    Parameters
    ----------
    before, after : (N, 3) in the same order, N >= 2.
    """
    moved = np.linalg.norm(after - before, axis=1)
    return ScanFigures(
        residuals=plane_residuals(after),
        moved_rms=float(np.sqrt(np.mean(moved**2))),
        moved_percentile_95=float(np.percentile(moved, 95)),
        moved_largest=float(moved.max()),
        spacing=typical_spacing(after),
        spacing_variation=spacing_variation(after),
    )


def plane_residuals(points: Float64, neighbours: int = PLANE_NEIGHBOURS) -> Float64:
    """
    How rough the surroundings of each point are: RMS distance to their own plane.

    Parameters
    ----------
    points : (N, 3).
    neighbours : points of a neighbourhood, itself among them.

    Returns
    -------
    (N,) the square root of the smallest eigenvalue of each neighbourhood's covariance.
    """
    centred = points - points.mean(axis=0)
    k = min(neighbours, len(points))
    _, index = cKDTree(centred).query(centred, k=k)
    residuals = np.empty(len(points))
    for first in range(0, len(points), 10_000):
        rows = slice(first, first + 10_000)
        around = centred[index[rows].reshape(-1, k)]
        around = around - around.mean(axis=1, keepdims=True)
        covariance = np.einsum("nki,nkj->nij", around, around) / k
        residuals[rows] = np.sqrt(np.maximum(np.linalg.eigvalsh(covariance)[:, 0], 0.0))
    return residuals

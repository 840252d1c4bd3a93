"""Evaluation: figures for real scans, whose true surface nobody knows."""

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


def plane_residuals(
    points: Float64, neighbours: int = PLANE_NEIGHBOURS, rows: NDArray[np.int64] | None = None
) -> Float64:
    """
    How rough the surroundings of each point are: RMS distance to their own plane.

    Parameters
    ----------
    points : (N, 3).
    neighbours : points of a neighbourhood, itself among them.
    rows : (M,) which points to answer for, with all as their surroundings; None for all N.

    Returns
    -------
    (N,) or (M,) the square root of the smallest eigenvalue of each neighbourhood's covariance.
    """
    centred = points - points.mean(axis=0)
    k = min(neighbours, len(points))
    _, index = cKDTree(centred).query(centred if rows is None else centred[rows], k=k)
    residuals = np.empty(len(index))
    for first in range(0, len(index), 10_000):
        some = slice(first, first + 10_000)
        around = centred[index[some].reshape(-1, k)]
        around = around - around.mean(axis=1, keepdims=True)
        covariance = np.einsum("nki,nkj->nij", around, around) / k
        residuals[some] = np.sqrt(np.maximum(np.linalg.eigvalsh(covariance)[:, 0], 0.0))
    return residuals

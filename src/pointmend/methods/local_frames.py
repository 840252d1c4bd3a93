"""Methods: neighbourhoods of every point, their principal axes, and quadrics fitted in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.geometry.meshes import unit_sphere

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

# Neighbours looked at together: bounds the memory of a chunk to some tens of megabytes.
CHUNK_NEIGHBOURS = 400_000

# Directions of the least-squares fit in which the points vary less than this share (squared) of
# the most varied one are left at zero, the least-norm answer for points on a line or a plane.
NEGLIGIBLE = 1e-13


def neighbours_for_level(level: float | None) -> int:
    """
    How many neighbours smoothing by local fits looks at: 30 up to 1 %, 60 up to 2 %, 100 above.

    Those of the rows we compare with. Where the level is not known 24, little smoothing.
    """
    if level is None:
        return 24
    # Half a percent of tolerance, for levels that come out of a division.
    return 30 if level <= 0.01005 else 60 if level <= 0.0201 else 100


def in_unit_sphere(points: Float64, denoise: Callable[[Float64], Float64]) -> Float64:
    """
    Denoise a cloud moved into the unit sphere, and move the result back.

    Offsets of any size cost no precision (what is moved back is the displacement), and thresholds
    mean the same for any units.

    Parameters
    ----------
    points : (N, 3). A cloud without extent is returned as it is.
    denoise : (N, 3) -> (N, 3).
    """
    points = np.asarray(points, dtype=np.float64)
    if len(points) == 0:
        return points.copy()
    centre, radius = unit_sphere(points)
    if radius == 0.0:
        return points.copy()
    x = (points - centre) / radius
    return points + radius * (denoise(x) - x)


def chunks(count: int, width: int) -> Iterator[slice]:
    """Cut `count` rows of `width` neighbours each into slices of bounded size."""
    rows = max(1, CHUNK_NEIGHBOURS // max(1, width))
    for start in range(0, count, rows):
        yield slice(start, min(start + rows, count))


def neighbourhoods(points: Float64, k: int) -> Int64:
    """
    Every point and its k nearest others: (N, min(k + 1, N)) rows of points, nearest first.

    Parameters
    ----------
    points : (N, 3) with N >= 1.
    k : neighbours wanted; fewer when there are not that many.
    """
    width = min(k + 1, len(points))
    tree = cKDTree(points)
    table = np.empty((len(points), width), dtype=np.int64)
    for rows in chunks(len(points), width):
        table[rows] = tree.query(points[rows], k=width)[1].reshape(-1, width)
    return table


def principal_axes(offsets: Float64, weights: Float64 | None = None) -> Float64:
    """
    Principal axes of neighbourhoods, the most varied direction first, the normal last.

    Parameters
    ----------
    offsets : (Q, k, 3) from any origin of each neighbourhood.
    weights : (Q, k) of the neighbours, not all zero; equal when None.

    Returns
    -------
    (Q, 3, 3) orthonormal columns. Signs are arbitrary.
    """
    if weights is None:
        centred = offsets - offsets.mean(axis=1, keepdims=True)
        covariance = np.swapaxes(centred, 1, 2) @ centred
    else:
        share = weights / weights.sum(axis=1, keepdims=True)
        centred = offsets - share[:, None, :] @ offsets
        covariance = np.swapaxes(centred, 1, 2) @ (share[..., None] * centred)
    return np.asarray(np.linalg.eigh(covariance)[1][:, :, ::-1], dtype=np.float64)


def fit_quadrics(local: Float64, weights: Float64 | None = None) -> Float64:
    """
    Coefficients of the quadric fitted to each neighbourhood by least squares.

    The surface is z = a0 + a1 x + a2 y + a3 x^2 / 2 + a4 x y + a5 y^2 / 2.

    Parameters
    ----------
    local : (Q, k, 3) coordinates of the neighbours, z along the normal.
    weights : (Q, k) of the neighbours, not all zero; equal when None.

    Returns
    -------
    (Q, 6)
    """
    x, y, z = np.moveaxis(local, 2, 0)
    # In units of the neighbourhood's size all columns are of order one, and the equations are
    # well conditioned. It does not change the surface.
    size = 0.5 * (np.abs(x) + np.abs(y)).mean(axis=1)
    size = np.where(size > 0.0, size, 1.0)
    x, y = x / size[:, None], y / size[:, None]
    basis = np.stack([np.ones_like(x), x, y, 0.5 * x * x, x * y, 0.5 * y * y], axis=1)
    weighted = basis if weights is None else basis * weights[:, None, :]
    values, vectors = np.linalg.eigh(weighted @ np.swapaxes(basis, 1, 2))
    kept = values > NEGLIGIBLE * values[:, -1:]
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    right = weighted @ z[..., None]
    along = inverse[..., None] * (np.swapaxes(vectors, 1, 2) @ right)
    powers = size[:, None] ** np.array([0, 1, 1, 2, 2, 2])
    coefficients: Float64 = (vectors @ along)[..., 0] / powers
    return coefficients


def jet_normals(axes: Float64, coefficients: Float64) -> Float64:
    """
    Normals over the origin of fitted quadrics.

    Parameters
    ----------
    axes : (Q, 3, 3) columns, those the quadrics were fitted in.
    coefficients : (Q, 6) as of `fit_quadrics`.

    Returns
    -------
    (Q, 3) unit vectors.
    """
    slope = np.stack([-coefficients[:, 1], -coefficients[:, 2], np.ones(len(axes))], axis=1)
    normal = (axes @ slope[..., None])[..., 0]
    unit: Float64 = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return unit

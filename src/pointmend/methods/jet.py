"""Methods: smoothing by jet fitting (Cazals and Pouget 2005), as CGAL's jet_smooth_point_set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .local_frames import (
    chunks,
    fit_quadrics,
    in_unit_sphere,
    neighbourhoods,
    neighbours_for_level,
    principal_axes,
)
from .method import Task

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class JetSmoothing:
    """
    Move every point onto the quadric fitted to its neighbourhood.

    The neighbourhood is the point and its k nearest others, all of equal weight. Its principal
    axes make a frame with the point at the origin; a height polynomial of degree 2 is fitted by
    least squares; the point moves along the least principal axis to the surface (the origin of
    the Monge form).

    Attributes
    ----------
    neighbours : k; when None 30, 60 or 100 for a level up to 1 %, up to 2 % or above, and 24 when
        the level is not known.
    name, keeps_order : see `Method`.
    """

    neighbours: int | None = None
    name: str = "jet"
    keeps_order: bool = True

    def __call__(self, task: Task) -> Float64:
        """Denoise: (N, 3) -> (N, 3)."""
        k = self.neighbours or neighbours_for_level(task.level)
        return in_unit_sphere(task.points, lambda points: smooth(points, k))


def smooth(points: Float64, k: int) -> Float64:
    """
    Move every point onto the quadric of itself and its k nearest others.

    Parameters
    ----------
    points : (N, 3), N >= 1, of order one.
    k : neighbours.

    Returns
    -------
    (N, 3)
    """
    table = neighbourhoods(points, k)
    moved = np.empty_like(points)
    for rows in chunks(*table.shape):
        offsets = points[table[rows]] - points[rows, None, :]
        axes = principal_axes(offsets)
        height = fit_quadrics(offsets @ axes)[:, :1]
        moved[rows] = points[rows] + height * axes[:, :, 2]
    return moved

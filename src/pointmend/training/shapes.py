"""Training: clean shapes as training wants them: clouds to cut patches from, surfaces to aim at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Surface:
    """
    A surface as a dense sample with normals, to find the way onto it by one tree query.

    Attributes
    ----------
    points : (R, 3) on the surface, far denser than any cloud denoised.
    normals : (R, 3) unit normals there.
    """

    points: Float64
    normals: Float64

    @cached_property
    def tree(self) -> cKDTree:
        """KD-tree of the sample."""
        return cKDTree(self.points)

    def way_from(self, x: Float64) -> tuple[Float64, Float64]:
        """
        The displacement ((q - x) . n) n onto the plane of the nearest sample q.

        Parameters
        ----------
        x : (N, 3) points near the surface.

        Returns
        -------
        way : (N, 3); normal : (N, 3) of the plane.
        """
        _, index = self.tree.query(x)
        normal = self.normals[index]
        height = np.einsum("ij,ij->i", self.points[index] - x, normal)
        return height[:, None] * normal, normal


@dataclass(frozen=True)
class Shape:
    """
    One clean shape in the unit sphere.

    Attributes
    ----------
    name : for messages.
    clouds : (N_i, 3) evenly sampled clouds of several resolutions.
    surface : the surface itself.
    """

    name: str
    clouds: Sequence[Float64]
    surface: Surface

    @cached_property
    def trees(self) -> list[cKDTree]:
        """One KD-tree per cloud."""
        return [cKDTree(cloud) for cloud in self.clouds]

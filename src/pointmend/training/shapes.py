"""Training: clean shapes as training wants them: clouds to cut patches from, surfaces to aim at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.geometry.meshes import Mesh, face_normals, sample_surface
from pointmend.geometry.triangles import closest_on_triangles

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


# A point's nearest triangle is looked for among those of so many samples around it.
CANDIDATES = 4


class Surface(Protocol):
    """What training points are to reach."""

    def way_from(self, x: Float64) -> tuple[Float64, Float64]:
        """
        The displacement of points onto the surface.

        Parameters
        ----------
        x : (N, 3) points near the surface.

        Returns
        -------
        way : (N, 3); normal : (N, 3) of the surface there.
        """


@dataclass(frozen=True)
class SampledSurface:
    """
    A surface known by a dense sample with normals: the way leads onto the nearest one's plane.

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
        """The displacement ((q - x) . n) n onto the plane of the nearest sample q: (N, 3) each."""
        _, index = self.tree.query(x)
        normal = self.normals[index]
        height = np.einsum("ij,ij->i", self.points[index] - x, normal)
        return height[:, None] * normal, normal


@dataclass(frozen=True)
class MeshSurface:
    """
    A surface known by its triangles, with a dense sample on them to find the nearest one by.

    Off a convex edge the way leads onto the edge. The plane of a face goes on beyond it: aiming at
    planes leaves points hanging outside every edge.

    Attributes
    ----------
    mesh : the triangles.
    points : (R, 3) on the surface, far denser than any cloud denoised.
    faces : (R,) the triangle each lies on.
    """

    mesh: Mesh
    points: Float64
    faces: Int64

    @classmethod
    def of(cls, mesh: Mesh, points: int, rng: np.random.Generator) -> MeshSurface:
        """The surface of a mesh, found by this many samples."""
        return cls(mesh, *sample_surface(mesh, points, rng))

    @cached_property
    def tree(self) -> cKDTree:
        """KD-tree of the sample."""
        return cKDTree(self.points)

    @cached_property
    def corners(self) -> Float64:
        """(F, 3, 3) of the triangles."""
        return self.mesh.vertices[self.mesh.faces]

    @cached_property
    def normals(self) -> Float64:
        """(F, 3) of the triangles."""
        return face_normals(self.mesh)

    def way_from(self, x: Float64) -> tuple[Float64, Float64]:
        """The displacement to the nearest point of the triangles around, and their normals."""
        _, index = self.tree.query(x, k=CANDIDATES)
        # Samples lie so densely that most of a point's candidates are on one triangle.
        face = np.sort(self.faces[index], axis=1)
        first = np.ones(face.shape, dtype=bool)
        first[:, 1:] = face[:, 1:] != face[:, :-1]
        point = np.nonzero(first)[0]
        ways = np.full((*face.shape, 3), np.inf)
        ways[first] = closest_on_triangles(x[point], self.corners[face[first]]) - x[point]
        best = np.einsum("nki,nki->nk", ways, ways).argmin(axis=1)
        row = np.arange(len(x))
        return ways[row, best], self.normals[face[row, best]]


@dataclass(frozen=True)
class Shape:
    """
    One clean shape in the unit sphere.

    Attributes
    ----------
    name : for messages.
    clouds : (N_i, 3) evenly sampled clouds of several resolutions.
    surface : the surface itself.
    most_noise : patches of it are never noisier, unless the noise is told; infinite where any noise
        will do.
    """

    name: str
    clouds: Sequence[Float64]
    surface: Surface
    most_noise: float = math.inf

    @cached_property
    def trees(self) -> list[cKDTree]:
        """One KD-tree per cloud."""
        return [cKDTree(cloud) for cloud in self.clouds]

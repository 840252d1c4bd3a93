"""Methods: bilateral smoothing (Huang et al. 2013, EAR), as CGAL's bilateral_smooth_point_set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    minimum_spanning_tree,
)

from .local_frames import (
    chunks,
    fit_quadrics,
    in_unit_sphere,
    jet_normals,
    neighbourhoods,
    neighbours_for_level,
    principal_axes,
)
from .method import Task

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

# Added to every edge of the graph: scipy takes an edge of weight zero for none.
PRESENT = 1.0


@dataclass(frozen=True)
class BilateralSmoothing:
    """
    Project every point onto its neighbours' planes, each weighted by distance and by normal.

    With the point p and its normal n, its k nearest others q_j with normals n_j, itself among
    them, and the radius r = 0.95 of the largest distance between any point and its k-th neighbour,

        w_j = exp(-4 |p - q_j|^2 / r^2) exp(-(1 - n . n_j)^2 / (1 - cos a)^2),
        n' = unit of the sum of w_j n_j,
        p' = p - n' (the weighted mean of (p - q_j) . n_j).

    Normals are those of quadrics fitted to the same neighbourhoods, given sides along the minimum
    spanning tree of 1 - |n . n_j| (Hoppe et al. 1992). The side they all share does not matter.

    Attributes
    ----------
    neighbours : k; when None 30, 60 or 100 for a level up to 1 %, up to 2 % or above, and 24 when
        the level is not known.
    sharpness : the angle a in degrees; a larger one rounds edges more. 25 is that of CGAL's
        example, which the compared rows were made with; its default is 30.
    iterations : how often; each starts from the moved points and the normals n'.
    name, keeps_order : see `Method`.
    """

    neighbours: int | None = None
    sharpness: float = 25.0
    iterations: int = 1
    name: str = "bilateral"
    keeps_order: bool = True

    def __call__(self, task: Task) -> Float64:
        """Denoise: (N, 3) -> (N, 3)."""
        k = self.neighbours or neighbours_for_level(task.level)
        return in_unit_sphere(task.points, lambda points: self._smooth(points, k))

    def _smooth(self, points: Float64, k: int) -> Float64:
        table = neighbourhoods(points, k)
        normals = oriented_normals(points, table)
        for iteration in range(self.iterations):
            if iteration > 0:
                table = neighbourhoods(points, k)
            points, normals = project(points, normals, table, self.sharpness)
        return points


def project(
    points: Float64, normals: Float64, table: Int64, sharpness: float
) -> tuple[Float64, Float64]:
    """
    One bilateral projection.

    Parameters
    ----------
    points : (N, 3).
    normals : (N, 3) of unit length, neighbours on one side.
    table : (N, k + 1) rows of every point and its neighbours, nearest first.
    sharpness : angle in degrees.

    Returns
    -------
    Moved points (N, 3) and their normals (N, 3).
    """
    farthest = points[table[:, -1]] - points
    radius = 0.95 * float(np.sqrt(np.einsum("ni,ni->n", farthest, farthest).max()))
    if radius == 0.0:
        return points, normals
    bandwidth = 1.0 - np.cos(np.radians(sharpness))
    moved, turned = np.empty_like(points), np.empty_like(normals)
    for rows in chunks(*table.shape):
        offsets = points[rows, None, :] - points[table[rows]]
        around = normals[table[rows]]
        squared = np.einsum("qki,qki->qk", offsets, offsets) / radius**2
        apart = (1.0 - np.einsum("qi,qki->qk", normals[rows], around)) / bandwidth
        weights = np.where(squared < 1.0, np.exp(-4.0 * squared - apart**2), 0.0)
        heights = np.einsum("qki,qki->qk", offsets, around)
        normal = np.einsum("qk,qki->qi", weights, around)
        # The point itself has weight 1 and those looking another way hardly any: no sum is zero.
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        height = np.einsum("qk,qk->q", weights, heights) / weights.sum(axis=1)
        moved[rows] = points[rows] - height[:, None] * normal
        turned[rows] = normal
    return moved, turned


def oriented_normals(points: Float64, table: Int64) -> Float64:
    """
    Normals of the quadrics fitted around every point, neighbours on one side where they can be.

    Parameters
    ----------
    points : (N, 3).
    table : (N, k + 1) rows of every point and its neighbours.

    Returns
    -------
    (N, 3) unit vectors; each connected part may be inside out.
    """
    normals = np.empty_like(points)
    for rows in chunks(*table.shape):
        offsets = points[table[rows]] - points[rows, None, :]
        axes = principal_axes(offsets)
        normals[rows] = jet_normals(axes, fit_quadrics(offsets @ axes))
    return side_along_tree(normals, table)


def side_along_tree(normals: Float64, table: Int64) -> Float64:
    """
    Turn normals to the side of their neighbours along the minimum spanning tree of 1 - |n . m|.

    Parameters
    ----------
    normals : (N, 3) unit vectors of arbitrary sign.
    table : (N, k + 1) neighbours, which make the graph.

    Returns
    -------
    (N, 3)
    """
    count = len(normals)
    parent = _parents(minimum_spanning_tree(_unlikeness(normals, table)))
    agreement = np.einsum("ni,ni->n", normals, normals[np.minimum(parent, count - 1)])
    sign = np.where((parent < count) & (agreement < 0.0), -1.0, 1.0)
    # The sign of a point is the product of all signs up to the root, which is its own parent:
    # each round doubles how far every point has looked.
    sign, parent = np.append(sign, 1.0), np.append(parent, count)
    while (parent != count).any():
        sign, parent = sign * sign[parent], parent[parent]
    sided: Float64 = normals * sign[:count, None]
    return sided


def _unlikeness(normals: Float64, table: Int64) -> csr_array:
    """The graph of neighbours weighted by 1 - |n . m|: (N, N). The tree takes it as undirected."""
    count, width = table.shape
    weight = np.empty(table.shape)
    for rows in chunks(count, width):
        alike = np.abs(np.einsum("qi,qki->qk", normals[rows], normals[table[rows]]))
        weight[rows] = PRESENT + np.clip(1.0 - alike, 0.0, 1.0)
    starts = np.arange(0, count * width + 1, width)
    return csr_array((weight.ravel(), table.ravel(), starts), shape=(count, count))


def _parents(tree: csr_array) -> Int64:
    """The parent of every point of a forest (N, N), N itself for the root of each tree: (N,)."""
    count = tree.shape[0]
    _, part = connected_components(tree, directed=False)
    _, roots = np.unique(part, return_index=True)
    forest = tree.tocoo()
    # One more vertex above all roots makes one tree of the forest, walked in one go.
    row = np.append(forest.row, np.full(len(roots), count))
    column = np.append(forest.col, roots)
    joined = coo_array((np.ones(len(row)), (row, column)), shape=(count + 1, count + 1)).tocsr()
    _, parent = breadth_first_order(joined, count, directed=False)
    return np.asarray(parent[:count], dtype=np.int64)

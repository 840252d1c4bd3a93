"""Geometry: spreading points evenly along the surface they lie on."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.chunks import chunks

from .symmetric import eigenvalues, eigenvector

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

# Neighbours that push a point, and that tell which way its surface lies.
NEIGHBOURS = 16

# Points push each other apart when they are nearer than this share of the distance to the last of
# these neighbours: a tenth more than what lies between points in a perfect hexagonal pattern as
# dense as they are. A round goes this share of the way, and a third of the reach at most.
REACH = 0.53
RATE = 0.3
LONGEST = 1.0 / 3.0

# Where the neighbours' centre is farther off than this share of their mean distance, a surface
# ends: nobody is there to push back, and points must not creep beyond it. For evenly spread
# neighbours it is 0.64 on a straight border, and around 0.2 away from one.
BORDER = 0.4

# Points handled at once by each thread.
CHUNK = 4096


def spread_evenly(points: Float64, rounds: int) -> Float64:
    """
    Let points push their neighbours apart along the surface, a few times.

    Noise leaves points in clumps with gaps between them, wherever it was removed; what is along
    the surface is not touched by moving points across it.

    Parameters
    ----------
    points : (N, 3) near a surface.
    rounds : how many times; five bring most of what can be gained.

    Returns
    -------
    (N, 3) in the same order.
    """
    if len(points) <= NEIGHBOURS:
        return points.copy()
    for _ in range(rounds):
        threads = torch.get_num_threads()
        distance, index = cKDTree(points).query(points, k=NEIGHBOURS + 1, workers=threads)
        farthest = distance[:, -1]
        moved = np.empty_like(points)
        for rows in chunks(len(points), CHUNK):
            # Of all around, because a point on a border has to look farther than it has room.
            reach = REACH * farthest[index[rows]].mean(axis=1)
            offsets = points[rows, None] - points[index[rows, 1:]]
            moved[rows] = points[rows] + _push(offsets, distance[rows, 1:], reach)
        points = moved
    return points


def _push(offsets: Float64, distance: Float64, reach: Float64) -> Float64:
    """
    How far each point is pushed along its surface.

    Parameters
    ----------
    offsets : (n, k, 3) from each neighbour to the point.
    distance : (n, k) their lengths.
    reach : (n,) nearer neighbours push.

    Returns
    -------
    (n, 3)
    """
    reach = reach[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        force = np.where(distance > 0.0, np.clip(reach / distance - 1.0, 0.0, None), 0.0)
    push = RATE * np.einsum("nk,nki->ni", force, offsets)
    push = _without(push, _normals(offsets))
    outward = offsets.mean(axis=1)
    far = np.linalg.norm(outward, axis=1, keepdims=True)
    ends = far > BORDER * distance.mean(axis=1, keepdims=True)
    leaves = np.einsum("ni,ni->n", push, outward)[:, None] > 0.0
    push = np.where(ends & leaves, _without(push, outward / np.maximum(far, 1e-300)), push)
    length = np.linalg.norm(push, axis=1, keepdims=True)
    return np.asarray(push * np.minimum(1.0, LONGEST * reach / np.maximum(length, 1e-300)))


def _normals(offsets: Float64) -> Float64:
    """Unit normals (n, 3) of the planes through neighbourhoods (n, k, 3)."""
    centred = offsets - offsets.mean(axis=1, keepdims=True)
    second = np.einsum("nki,nkj->ijn", centred, centred)
    entries = torch.from_numpy(second[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]])
    return np.asarray(eigenvector(entries, eigenvalues(entries)[0]).t().numpy())


def _without(vectors: Float64, axes: Float64) -> Float64:
    """Vectors (n, 3) without their part along unit axes (n, 3)."""
    return np.asarray(vectors - np.einsum("ni,ni->n", vectors, axes)[:, None] * axes)

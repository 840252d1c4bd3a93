"""Geometry: overlapping patches around farthest points, their owners, stitching (Alg. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .farthest import farthest_points

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Patches:
    """
    R patches of n points each that together cover a cloud of N points.

    Attributes
    ----------
    members : (R, n) indices into the cloud, nearest to the patch's centre first.
    centres : (R, 3) the seeds the patches were grown around.
    owner : (N,) the patch that decides about each point: the one whose centre is nearest.
    place : (N,) where the point stands in its owner's row of members.
    """

    members: Int64
    centres: Float64
    owner: Int64
    place: Int64

    @property
    def size(self) -> int:
        """Points of each patch."""
        return int(self.members.shape[1])

    @cached_property
    def owned(self) -> list[Int64]:
        """For each patch, the places in its row of the points it owns."""
        order = np.argsort(self.owner, kind="stable")
        counts = np.bincount(self.owner, minlength=len(self.members))
        return np.split(self.place[order], np.cumsum(counts)[:-1])

    def deciding_first(self, count: int) -> Patches:
        """Those of these patches that decide about the first so many points, and no others."""
        needed, owner = np.unique(self.owner[:count], return_inverse=True)
        return Patches(
            members=self.members[needed],
            centres=self.centres[needed],
            owner=owner.astype(np.int64),
            place=self.place[:count],
        )

    def apart(self) -> Patches:
        """
        The same patches as clouds of their own, which share no point (independent patches).

        Point (r, j) of the new cloud of R n points is point members[r, j] of the old one.
        """
        count, size = self.members.shape
        return Patches(
            members=np.arange(count * size, dtype=np.int64).reshape(count, size),
            centres=self.centres,
            owner=np.repeat(np.arange(count, dtype=np.int64), size),
            place=np.tile(np.arange(size, dtype=np.int64), count),
        )

    def stitch(self, positions: Float64) -> Float64:
        """
        Take each point from the patch that owns it (Alg. 2, line 16).

        Parameters
        ----------
        positions : (R n, 3) positions of all patches' points.

        Returns
        -------
        (N, 3)
        """
        return positions.reshape(*self.members.shape, 3)[self.owner, self.place]


def cover_by_patches(points: Float64, size: int, overlap: float) -> Patches:
    """
    Construct overlapping patches by farthest-point sampling (Alg. 2, line 1).

    Parameters
    ----------
    points : (N, 3) with N >= 1.
    size : points of a patch; a smaller cloud is one patch.
    overlap : how many patches a point lies in on average.

    Returns
    -------
    Patches that cover every point: where density varies so much that the seeds leave gaps,
    further patches are grown around the points left out.
    """
    size = min(size, len(points))
    if size == len(points):
        seeds = farthest_points(points, 1)
    else:
        seeds = farthest_points(points, int(np.ceil(overlap * len(points) / size)))
    tree = cKDTree(points)
    members = _nearest_rows(tree, points[seeds], size)
    while True:
        uncovered = np.ones(len(points), dtype=bool)
        uncovered[members] = False
        left = np.flatnonzero(uncovered)
        if len(left) == 0:
            break
        more = left[farthest_points(points[left], int(np.ceil(overlap * len(left) / size)))]
        seeds = np.concatenate([seeds, more])
        members = np.concatenate([members, _nearest_rows(tree, points[more], size)])
    owner, place = _nearest_centre(points, points[seeds], members)
    return Patches(members, points[seeds], owner, place)


def _nearest_rows(tree: cKDTree, centres: Float64, size: int) -> Int64:
    """The `size` nearest points of each centre: (R, size), nearest first."""
    _, index = tree.query(centres, k=size)
    return np.asarray(index, dtype=np.int64).reshape(len(centres), size)


def _nearest_centre(points: Float64, centres: Float64, members: Int64) -> tuple[Int64, Int64]:
    """Among the patches that contain a point, the one whose centre is nearest: (N,), (N,)."""
    size = members.shape[1]
    distance = np.sum((points[members] - centres[:, None, :]) ** 2, axis=2).reshape(-1)
    # Written farthest first, so that the nearest is what remains.
    order = np.argsort(-distance, kind="stable")
    owner = np.empty(len(points), dtype=np.int64)
    place = np.empty(len(points), dtype=np.int64)
    owner[members.reshape(-1)[order]] = order // size
    place[members.reshape(-1)[order]] = order % size
    return owner, place

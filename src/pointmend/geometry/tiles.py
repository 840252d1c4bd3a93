"""Geometry: boxes that hold about as many points each, however unevenly a cloud lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


def tiles_for(points: int, tile_points: int) -> int:
    """How many tiles a cloud needs."""
    return max(1, -(-points // tile_points))


@dataclass(frozen=True)
class Tiling:
    """
    A space cut in two again and again, each time across its longest side.

    Attributes
    ----------
    axis, value : (S,) of each cut; what lies below `value` goes left.
    left, right : (S,) the next cut on either side, or -1 - tile.
    boxes : (T, 2, 3) lowest and highest corner of each tile; the outer ones reach to infinity.
    """

    axis: Int64
    value: Float64
    left: Int64
    right: Int64
    boxes: Float64

    def __len__(self) -> int:
        """Number of tiles T."""
        return len(self.boxes)

    def tile_of(self, points: Float64) -> Int64:
        """The tile (N,) of each point (N, 3)."""
        if len(self.axis) == 0:
            return np.zeros(len(points), dtype=np.int64)
        place = np.zeros(len(points), dtype=np.int64)
        under_way = np.arange(len(points))
        while len(under_way):
            cut = place[under_way]
            below = points[under_way, self.axis[cut]] < self.value[cut]
            place[under_way] = np.where(below, self.left[cut], self.right[cut])
            under_way = under_way[place[under_way] >= 0]
        return -1 - place

    def distance(self, tile: int, points: Float64) -> Float64:
        """How far points (N, 3) lie from a tile's box: (N,), 0 inside."""
        low, high = self.boxes[tile]
        beyond = np.maximum(np.maximum(low - points, points - high), 0.0)
        return np.asarray(np.linalg.norm(beyond, axis=1))

    def gaps(self, tile: int) -> Float64:
        """The distance (T,) between a tile's box and every other one's."""
        low, high = self.boxes[tile]
        beyond = np.maximum(np.maximum(self.boxes[:, 0] - high, low - self.boxes[:, 1]), 0.0)
        return np.asarray(np.linalg.norm(beyond, axis=1))


def split_evenly(sample: Float64, tiles: int) -> Tiling:
    """
    Cut space into tiles that hold equal parts of a sample.

    Parameters
    ----------
    sample : (M, 3) points that stand for the whole cloud.
    tiles : how many are wanted; there are fewer when points coincide.
    """
    axis: list[int] = []
    value: list[float] = []
    left: list[int] = []
    right: list[int] = []
    boxes: list[Float64] = []

    def cut(points: Float64, wanted: int, box: Float64) -> int:
        """Cut a part of space, and return where it stands in the lists: a cut, or -1 - tile."""
        extent = np.ptp(points, axis=0) if len(points) else np.zeros(3)
        longest = int(extent.argmax())
        column = np.sort(points[:, longest])
        lower_tiles = wanted // 2
        split = column[len(column) * lower_tiles // wanted] if wanted > 1 and len(points) else 0.0
        below = points[:, longest] < split
        if wanted <= 1 or not below.any():
            boxes.append(box)
            return -len(boxes)
        here = len(axis)
        axis.append(longest)
        value.append(float(split))
        left.append(0)
        right.append(0)
        lower, upper = box.copy(), box.copy()
        lower[1, longest] = upper[0, longest] = split
        left[here] = cut(points[below], lower_tiles, lower)
        right[here] = cut(points[~below], wanted - lower_tiles, upper)
        return here

    cut(sample, tiles, np.array([[-np.inf] * 3, [np.inf] * 3]))
    whole = np.array(boxes).reshape(-1, 2, 3)
    return Tiling(
        np.array(axis, dtype=np.int64),
        np.array(value, dtype=np.float64),
        np.array(left, dtype=np.int64),
        np.array(right, dtype=np.int64),
        whole,
    )

"""Denoising: where points lie while they are worked on, tile by tile with what is around."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.geometry.density import AROUND, spacing_from
from pointmend.geometry.tiles import Tiling

from .moved import Moved
from .options import HALO

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

# Points that stand for a cloud when space is divided; more of a very large one, because a tile
# that is cut by a hundred of them is still even to a tenth.
SAMPLE_POINTS = 200_000
LONGEST_STRIDE = 1_500

# Points of a tile whose neighbours tell how far its points reach.
PROBES = 300


class PointSource(Protocol):
    """Where the points of a cloud lie, tile by tile; all of them finite."""

    @property
    def tiling(self) -> Tiling:
        """How space is divided."""

    @property
    def count(self) -> int:
        """Points in all."""

    def read(self, tile: int) -> Float64:
        """The points (n, 3) of a tile as they came."""


class PointStore(PointSource, Protocol):
    """Where the points of a cloud lie, and what becomes of them goes."""

    def write(self, tile: int, moved: Moved) -> None:
        """Keep what became of a tile's points, in the order `read` gave them."""


class MemoryStore:
    """
    A cloud in memory.

    Parameters
    ----------
    points : (N, 3) finite.
    tiling : of space.

    Attributes
    ----------
    found : what became of the points, in their own order.
    """

    def __init__(self, points: Float64, tiling: Tiling) -> None:
        self.tiling = tiling
        self._points = points
        tile = tiling.tile_of(points)
        order = np.argsort(tile, kind="stable")
        cuts = np.searchsorted(tile[order], np.arange(1, len(tiling)))
        self._rows = np.split(order, cuts)
        self.found = Moved.nothing(len(points))

    @property
    def count(self) -> int:
        """Points in all."""
        return len(self._points)

    def rows(self, tile: int) -> Int64:
        """Which points (n,) lie in a tile."""
        return self._rows[tile]

    def read(self, tile: int) -> Float64:
        """The points (n, 3) of a tile."""
        return self._points[self._rows[tile]]

    def write(self, tile: int, moved: Moved) -> None:
        """Keep what became of them."""
        self.found.put(self._rows[tile], moved)
        self.found = replace(self.found, times=moved.times)


@dataclass(frozen=True)
class Neighbourhoods:
    """The tiles of a store with their surroundings; how far each reaches is measured once."""

    store: PointSource
    reaches: dict[int, float] = field(default_factory=dict)

    def reach(self, tile: int) -> float:
        """How far the points of a tile can matter to others, in input units."""
        if tile not in self.reaches:
            points = self.store.read(tile)
            self.reaches[tile] = HALO * _local_spacing(points) if len(points) else 0.0
        return self.reaches[tile]

    def around(self, tile: int) -> Float64:
        """The points (m, 3) of other tiles that can matter to a tile's points."""
        tiling = self.store.tiling
        gaps = tiling.gaps(tile)
        pieces = [np.zeros((0, 3))]
        for other in np.flatnonzero(np.arange(len(tiling)) != tile).tolist():
            reach = self.reach(other) if gaps[other] < np.inf else 0.0
            if gaps[other] <= reach:
                points = self.store.read(other)
                pieces.append(points[tiling.distance(tile, points) <= reach])
        return np.concatenate(pieces)


def _local_spacing(points: Float64) -> float:
    """The local spacing that nineteen of twenty points (n, 3) stay below."""
    probes = points[:: max(1, len(points) // PROBES)]
    k = min(AROUND, len(points))
    distance, _ = cKDTree(points).query(probes, k=k)
    return float(np.percentile(spacing_from(distance.reshape(len(probes), k)), 95.0))


def sample_stride(points: int) -> int:
    """Every so many-th point of a cloud stands for it when space is divided."""
    return max(1, min(points // SAMPLE_POINTS, LONGEST_STRIDE))

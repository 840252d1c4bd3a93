"""Room `cluster`: the sorted points of many files as the tiles of one cloud."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.tiles import Tiling
from pointmend.scans.scratch import read_waiting

from .work import WorkFolder

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


class JoinedStore:
    """
    Many sorted files as one `PointSource`.

    A tile's points come in the order of the files, and of the rows in each: as if the files had
    been one.

    Parameters
    ----------
    work : where the files were sorted.
    tiling : of space.
    segments : (K,) of `SEGMENT`: which part of which sorted file belongs to which tile.
    """

    def __init__(self, work: WorkFolder, tiling: Tiling, segments: NDArray[np.void]) -> None:
        self.tiling = tiling
        self._work = work
        self._segments = segments[np.lexsort((segments["part"], segments["tile"]))]
        self._first = np.searchsorted(self._segments["tile"], np.arange(len(tiling) + 1))

    @property
    def count(self) -> int:
        """Points in all."""
        return int(self._segments["count"].sum())

    def of(self, tile: int) -> NDArray[np.void]:
        """The segments of a tile."""
        return self._segments[self._first[tile] : self._first[tile + 1]]

    def read(self, tile: int) -> Float64:
        """The points (n, 3) of a tile."""
        pieces = [np.zeros((0, 3))]
        for segment in self.of(tile):
            folder = self._work.sorted(int(segment["part"]))
            found = read_waiting(folder, int(segment["first"]), int(segment["count"]))
            pieces.append(found["position"])
        return np.concatenate(pieces)

    def counts(self, part: int) -> Int64:
        """How many points (T,) of a file lie in each tile."""
        counts = np.zeros(len(self.tiling), dtype=np.int64)
        mine = self._segments[self._segments["part"] == part]
        counts[mine["tile"]] = mine["count"]
        return counts

    def rows(self, tile: int, part: int) -> Int64:
        """Which of a tile's points (n,) come from a file."""
        segments = self.of(tile)
        before = int(segments["count"][segments["part"] < part].sum())
        return before + np.arange(int(segments["count"][segments["part"] == part].sum()))

"""Room `scans`: a cloud larger than memory, kept tile by tile in a scratch folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointmend.cloud.files import PIECE_ROWS
from pointmend.denoising.moved import Moved
from pointmend.geometry.ordering import valid_rows
from pointmend.geometry.tiles import Tiling

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

# What is kept of a point while it waits for its tile, and of its result.
WAITING = np.dtype([("position", "<f8", 3), ("row", "<i8")])
RESULT = np.dtype([("shift", "<f8", 3), ("share", "<f4"), ("sigma", "<f4"), ("outlier", "?")])

SORTED = "tiles"

# Rows scattered over a result file at once: each may touch a page of its own.
SCATTERED = 16_384


class ScratchStore:
    """
    The points of a file in tiles, and the results in the order of the file.

    A `PointStore` that holds in memory no more than the tile asked for.

    Parameters
    ----------
    folder : of `sort`.
    tiling : of space.
    counts : (T,) points in each tile.
    rows : of the file.

    Attributes
    ----------
    rows : of the file.
    times : what the sampler visited in the last tile.
    """

    def __init__(self, folder: Path, tiling: Tiling, counts: Int64, rows: int) -> None:
        self.tiling = tiling
        self.counts = counts
        self.rows = rows
        self.times: tuple[float, ...] = (0.0,)
        self._folder = folder
        self._results = folder / "results"
        self._first = np.concatenate([[0], np.cumsum(counts)])

    @classmethod
    def sort(
        cls, folder: Path, tiling: Tiling, pieces: Callable[[], Iterator[Float64]]
    ) -> ScratchStore:
        """
        Sort the points of a file into tiles.

        Parameters
        ----------
        folder : an empty one, for 32 and 33 bytes per point.
        pieces : gives the positions (n, 3) of the file piece by piece, from the beginning, each
            time it is called. Rows that are not finite take no part.
        """
        counts = np.zeros(len(tiling), dtype=np.int64)
        rows = 0
        for positions in pieces():
            finite = valid_rows(positions)
            counts += np.bincount(tiling.tile_of(positions[finite]), minlength=len(tiling))
            rows += len(positions)
        store = cls(folder, tiling, counts, rows)
        store._fill(pieces)
        with store._results.open("wb") as file:
            file.truncate(rows * RESULT.itemsize)
        return store

    def _fill(self, pieces: Callable[[], Iterator[Float64]]) -> None:
        place = self._first[:-1].copy()
        start = 0
        with (self._folder / SORTED).open("wb") as file:
            for positions in pieces():
                row = np.flatnonzero(valid_rows(positions))
                tile = self.tiling.tile_of(positions[row])
                order = np.argsort(tile, kind="stable")
                waiting = np.empty(len(row), dtype=WAITING)
                waiting["position"], waiting["row"] = positions[row[order]], start + row[order]
                counts = np.bincount(tile, minlength=len(self.tiling))
                ends = np.cumsum(counts)
                for number in np.flatnonzero(counts).tolist():
                    file.seek(int(place[number]) * WAITING.itemsize)
                    file.write(waiting[ends[number] - counts[number] : ends[number]].tobytes())
                place += counts
                start += len(positions)

    @property
    def count(self) -> int:
        """Points that take part."""
        return int(self._first[-1])

    def _read(self, tile: int) -> NDArray[np.void]:
        return read_waiting(self._folder, int(self._first[tile]), int(self.counts[tile]))

    def read(self, tile: int) -> Float64:
        """The points (n, 3) of a tile."""
        return np.ascontiguousarray(self._read(tile)["position"])

    def write(self, tile: int, moved: Moved) -> None:
        """Keep what became of a tile's points."""
        self.times = moved.times
        row = self._read(tile)["row"]
        order = np.argsort(row)
        for first in range(0, len(order), SCATTERED):
            part = order[first : first + SCATTERED]
            results = np.memmap(self._results, RESULT, mode="r+", shape=(self.rows,))
            at = row[part]
            results["shift"][at], results["share"][at] = moved.shift[part], moved.shares[part]
            results["sigma"][at], results["outlier"][at] = moved.sigma[part], moved.outlier[part]
            # Unmapped again, the touched pages no longer count as memory of this process.
            del results

    def outliers(self) -> int:
        """How many points were flagged."""
        return sum(int(found.outlier.sum()) for found in self._all_results())

    def mean_sigma(self) -> float:
        """The mean noise level that points were treated with, outliers and holes left out."""
        total, count = 0.0, 0
        for found in self._all_results():
            treated = found.sigma > 0.0
            total, count = total + float(found.sigma[treated].sum()), count + int(treated.sum())
        return total / count if count else 0.0

    def _all_results(self) -> Iterator[Moved]:
        return (self.results(first, PIECE_ROWS) for first in range(0, self.rows, PIECE_ROWS))

    def results(self, start: int, rows: int) -> Moved:
        """What became of rows start ... start + rows of the file."""
        found = np.fromfile(self._results, RESULT, rows, offset=start * RESULT.itemsize)
        return Moved(
            np.ascontiguousarray(found["shift"]),
            found["share"].astype(np.float64),
            found["sigma"].astype(np.float64),
            np.ascontiguousarray(found["outlier"]),
            self.times,
        )


def read_waiting(folder: Path, first: int, count: int) -> NDArray[np.void]:
    """Some points (count,) of a sorted file, as `WAITING`."""
    return np.fromfile(folder / SORTED, WAITING, count, offset=first * WAITING.itemsize)


@contextmanager
def scratch_folder(beside: Path) -> Iterator[Path]:
    """A private folder beside a file to be written, gone when the block ends."""
    folder = Path(tempfile.mkdtemp(prefix=".pointmend-", suffix=".tiles", dir=beside.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)

"""Room `cloud`: writing LAS and LAZ files, a piece of the points after the other."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from pointmend.cloud import las_laz
from pointmend.cloud.las_new import Summary
from pointmend.cloud.las_plan import Plan
from pointmend.cloud.las_points import Array, return_numbers
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

_RETURNS = 15
_INTERNAL_WAVEFORMS = 0b10  # of the global encoding
_BYTES_PER_STEP = 1 << 24


def rows_per_step(record: int) -> int:
    """Return how many records of so many bytes are handled at a time."""
    return max(1, _BYTES_PER_STEP // record)


class LasWriter:
    """
    A LAS or LAZ file under construction.

    Parameters
    ----------
    plan : Plan
        All but the points.
    file : binary file
        Empty, open for writing.
    compress : bool
        Whether it becomes LAZ.
    """

    def __init__(self, plan: Plan, file: BinaryIO, compress: bool) -> None:
        self._plan = plan
        self._file = file
        self._count = 0
        self._by_return = np.zeros(_RETURNS + 1, dtype=np.int64)
        self._low = np.full(3, np.iinfo(np.int32).max)
        self._high = np.full(3, np.iinfo(np.int32).min)
        self.checksum = 0
        header, records = plan.header, plan.records
        self._compressor = None
        if compress:
            extra = sum(e.size for e in plan.extras)
            self._compressor = las_laz.Compressor(file, header.point_format, extra)
            records = (*records, self._compressor.record)
        bodies = b"".join(r.to_bytes() for r in records) + plan.padding
        self._header = header.with_format(
            header.point_format, plan.dtype.itemsize, compress
        ).patched(points_at=len(header.raw) + len(bodies), records=len(records))
        file.write(self._header.raw + bodies)

    def append(self, piece: PointCloud) -> None:
        """Add points with the attributes that were planned."""
        rows = rows_per_step(self._plan.dtype.itemsize)
        for start in range(0, len(piece), rows):
            self._write(self._plan.pack(piece[start : start + rows]))

    def _write(self, records: Array) -> None:
        if self._compressor is None:
            self._file.write(records.view(np.uint8).data)
        else:
            self.checksum = zlib.crc32(records.view(np.uint8).data, self.checksum)
            self._compressor.append(records)
        self._count += len(records)
        for axis, name in enumerate("XYZ"):
            self._low[axis] = min(self._low[axis], records[name].min())
            self._high[axis] = max(self._high[axis], records[name].max())
        returns = return_numbers(records, self._plan.header.point_format)
        self._by_return += np.bincount(returns, minlength=_RETURNS + 1)

    def finish(self, count: int) -> None:
        """Write what stands behind the `count` points, and the header again, now complete."""
        if self._count != count:
            raise FileFormatError(f"{self._count} points were written instead of {count}")
        if count >= 1 << 32 and self._header.minor < 4:
            raise FileFormatError(f"LAS 1.{self._header.minor} has no room for {count} points")
        if self._compressor is not None:
            self._compressor.finish()
        extended = self._plan.extended_records
        place = self._file.seek(0, os.SEEK_END)
        for record in extended:
            self._file.write(record.to_bytes())
        scale = np.array(self._header.numbers("scale"))
        offset = np.array(self._header.numbers("offset"))
        low = self._low * scale + offset if count else np.zeros(3)
        high = self._high * scale + offset if count else np.zeros(3)
        encoding = self._header.number("global_encoding") & ~_INTERNAL_WAVEFORMS
        by_return = tuple(self._by_return[1:].tolist())
        header = self._header.with_counts(count, by_return).patched(
            bounds=tuple(np.stack([high, low], axis=1).ravel().tolist()),
            global_encoding=encoding,
            waveforms_at=0,
            extended_at=place if extended else 0,
            extended=len(extended),
        )
        self._file.seek(0)
        self._file.write(header.raw)


class Spool:
    """
    Points that wait in a temporary file until all of them are known.

    Parameters
    ----------
    file : binary file
        Empty, open for reading and writing.
    template : PointCloud
        Has the attributes that all points must have.
    """

    def __init__(self, file: BinaryIO, template: PointCloud) -> None:
        self._file = file
        self._pieces = 0
        self.summary = Summary.of(template[:0])

    def append(self, piece: PointCloud) -> None:
        """Keep points with the attributes the template had."""
        expected = self.summary.kinds
        self.summary.add(piece)
        if self.summary.kinds != expected:
            raise FileFormatError("some of the points have other attributes than the first ones")
        for values in (piece.positions, *piece.attributes.values()):
            np.save(self._file, values, allow_pickle=False)
        self._pieces += 1

    def pieces(self) -> Iterator[PointCloud]:
        """Yield what was kept, in order."""
        self._file.seek(0)
        for _ in range(self._pieces):
            positions = np.load(self._file, allow_pickle=False)
            names = self.summary.kinds
            yield PointCloud(
                positions, {name: np.load(self._file, allow_pickle=False) for name in names}
            )

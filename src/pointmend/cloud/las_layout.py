"""Room `cloud`: what a LAS or LAZ file has beyond positions and attributes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pointmend.cloud import las_laz
from pointmend.cloud.las_header import (
    EXTRA_BYTES,
    LASZIP,
    WAVEFORMS,
    Header,
    Record,
    read_extended_records,
    read_header,
    read_records,
)
from pointmend.cloud.las_points import Extra, parse_extras, record_type
from pointmend.errors import FileFormatError

_EXTERNAL_WAVEFORMS = 0b100  # of the global encoding
_STEPS = 2.0**31  # X, Y and Z are 32-bit integers


@dataclass(frozen=True)
class LasLayout:
    """
    What a LAS or LAZ file had beyond positions and attributes; kept as `metadata["las"]`.

    Parameters
    ----------
    header : Header
        As it stood in the file.
    records, extended_records : tuple of Record
        What stood before and behind the points (VLRs and EVLRs).
    padding : bytes
        What stood between the last of `records` and the points.
    extras : tuple of Extra
        The extra bytes of each point.
    """

    header: Header
    records: tuple[Record, ...]
    padding: bytes
    extended_records: tuple[Record, ...]
    extras: tuple[Extra, ...]

    @property
    def scale(self) -> npt.NDArray[np.float64]:
        """Step of the grid that coordinates lie on, (3,)."""
        return np.array(self.header.numbers("scale"))

    @property
    def offset(self) -> npt.NDArray[np.float64]:
        """Where that grid has its zero, (3,)."""
        return np.array(self.header.numbers("offset"))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Structured type of a record."""
        return record_type(self.header.point_format, self.extras)

    @property
    def laszip(self) -> Record | None:
        """The record that tells how points are compressed."""
        return next((r for r in self.records if r.key == LASZIP), None)

    @property
    def has_internal_waveforms(self) -> bool:
        """Whether the recorded waves themselves stand in the file, behind the points."""
        found = any(r.key == WAVEFORMS for r in self.extended_records)
        return found or self.header.number("waveforms_at") > 0

    @property
    def has_external_waveforms(self) -> bool:
        """Whether the recorded waves stand in a .wdp file of the same name."""
        has_packets = self.header.point_format in (4, 5, 9, 10)
        return has_packets and bool(self.header.number("global_encoding") & _EXTERNAL_WAVEFORMS)


def read_layout(file: BinaryIO) -> LasLayout:
    """Read all of `file` but its points, and make sure that these can be read."""
    header = read_header(file)
    room = header.number("record_length") - record_type(header.point_format, ()).itemsize
    if room < 0:
        raise FileFormatError(
            f"LAS header declares {header.number('record_length')} bytes per point, but point "
            f"format {header.point_format} needs {-room} more"
        )
    check_grid(np.array(header.numbers("scale")), np.array(header.numbers("offset")))
    records, padding = read_records(file, header)
    described = next((r.data for r in records if r.key == EXTRA_BYTES), b"")
    extras = parse_extras(described, room, header.point_format)
    extended = read_extended_records(file, header)
    layout = LasLayout(header, records, padding, extended, extras)
    if header.is_compressed:
        las_laz.check(file, header, layout.laszip)
    else:
        _check_size(file, header)
    return layout


def farthest(
    scale: npt.NDArray[np.float64], offset: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return how far from 0 (3,) coordinates of `scale` (3,) and `offset` (3,) can be."""
    return np.asarray(np.abs(offset) + _STEPS * np.abs(scale))


def check_grid(scale: npt.NDArray[np.float64], offset: npt.NDArray[np.float64]) -> None:
    """Refuse a grid of `scale` (3,) and `offset` (3,) whose steps float64 cannot tell apart."""
    with np.errstate(over="ignore", invalid="ignore"):
        reach = farthest(scale, offset)
        # That is false for a scale of 0 or less, and for whatever is infinite or no number.
        good = np.spacing(reach) <= scale / 4
    if not good.all():
        axis = int(np.flatnonzero(~good)[0])
        raise FileFormatError(
            f"LAS coordinates with scale {scale[axis]:g} and offset {offset[axis]:g} "
            f"in {'xyz'[axis]} make no sense; its header is damaged"
        )


def _check_size(file: BinaryIO, header: Header) -> None:
    """Compare the declared points with the bytes that are there for them."""
    start = header.number("points_at")
    ends = [os.fstat(file.fileno()).st_size, header.number("waveforms_at")]
    if header.number("extended"):
        ends.append(header.number("extended_at"))
    there = min(end for end in ends if end >= start) - start
    needed = header.count * header.number("record_length")
    if needed > there:
        raise FileFormatError(
            f"LAS header declares {header.count} points: {needed} bytes, but {there} follow; "
            "the file is cut off or its header is wrong"
        )
    if there - needed >= header.number("record_length"):
        raise FileFormatError(
            f"LAS file has {there - needed} bytes after the {header.count} points its header "
            "declares; the count in the header is wrong"
        )

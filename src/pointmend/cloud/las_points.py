"""Room `cloud`: the point formats 0 to 10 of LAS, and the extra bytes a file may add to them."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.precision import holds
from pointmend.errors import FileFormatError

Array = npt.NDArray[Any]

# Bits are named from the lowest to the highest of their byte.
_OLD_RETURNS = (
    ("return_number", 3), ("number_of_returns", 3),
    ("scan_direction_flag", 1), ("edge_of_flight_line", 1),
)  # fmt: skip
_OLD_CLASS = (("classification", 5), ("synthetic", 1), ("key_point", 1), ("withheld", 1))
_NEW_RETURNS = (("return_number", 4), ("number_of_returns", 4))
_NEW_FLAGS = (
    ("synthetic", 1), ("key_point", 1), ("withheld", 1), ("overlap", 1), ("scanner_channel", 2),
    ("scan_direction_flag", 1), ("edge_of_flight_line", 1),
)  # fmt: skip
_Fields = tuple[tuple[str | tuple[tuple[str, int], ...], str], ...]
_OLD: _Fields = (
    ("intensity", "<u2"), (_OLD_RETURNS, "u1"), (_OLD_CLASS, "u1"), ("scan_angle_rank", "i1"),
    ("user_data", "u1"), ("point_source_id", "<u2"),
)  # fmt: skip
_NEW: _Fields = (
    ("intensity", "<u2"), (_NEW_RETURNS, "u1"), (_NEW_FLAGS, "u1"), ("classification", "u1"),
    ("user_data", "u1"), ("scan_angle", "<i2"), ("point_source_id", "<u2"),
)  # fmt: skip
_TIME: _Fields = (("gps_time", "<f8"),)
_COLOUR: _Fields = (("red", "<u2"), ("green", "<u2"), ("blue", "<u2"))
_INFRARED: _Fields = (("nir", "<u2"),)
_WAVE: _Fields = (
    ("wavepacket_index", "u1"), ("wavepacket_offset", "<u8"), ("wavepacket_size", "<u4"),
    ("return_point_wave_location", "<f4"), ("x_t", "<f4"), ("y_t", "<f4"), ("z_t", "<f4"),
)  # fmt: skip
_FORMATS: tuple[_Fields, ...] = (
    _OLD,
    _OLD + _TIME,
    _OLD + _COLOUR,
    _OLD + _TIME + _COLOUR,
    _OLD + _TIME + _WAVE,
    _OLD + _TIME + _COLOUR + _WAVE,
    _NEW + _TIME,
    _NEW + _TIME + _COLOUR,
    _NEW + _TIME + _COLOUR + _INFRARED,
    _NEW + _TIME + _WAVE,
    _NEW + _TIME + _COLOUR + _INFRARED + _WAVE,
)
OLD_FORMATS, NEW_FORMATS = range(6), range(6, 11)

_DESCRIPTION = struct.Struct("<2xBB32s124x32s")
_LONGEST_NAME = 32
_TYPES = ("u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f4", "<f8")
_UNDESCRIBED = "ExtraBytes"


@dataclass(frozen=True)
class Dimension:
    """
    A number that every point of a point format has.

    Parameters
    ----------
    name : str
        Of the attribute; these are the names laspy and PDAL users know.
    field : str
        Of the structured array of records.
    dtype : np.dtype
        Of the field, little endian.
    shift, bits : int
        Which bits of the field, if not all of them.
    """

    name: str
    field: str
    dtype: np.dtype[Any]
    shift: int = 0
    bits: int = 0


@dataclass(frozen=True)
class Extra:
    """
    Something a file adds to each point beyond its point format ("extra bytes").

    Numbers are kept as they are stored: a scale and offset in the description are not applied.

    Parameters
    ----------
    name : str
        Of the attribute.
    dtype : np.dtype
        Of one number, little endian.
    width : int
        c of an attribute (N, c), or 0 for one of shape (N,).
    description : bytes
        192 bytes that tell other programs what it is; none for bytes the file does not explain.
    """

    name: str
    dtype: np.dtype[Any]
    width: int
    description: bytes

    @property
    def size(self) -> int:
        """Bytes per point."""
        return self.dtype.itemsize * max(1, self.width)

    def fits(self, values: Array) -> bool:
        """Tell whether `values` (N,) or (N, c) can be stored without another description."""
        width = values.shape[1] if values.ndim == 2 else 0
        return values.dtype.newbyteorder("<") == self.dtype and width == self.width


@cache
def dimensions(point_format: int) -> tuple[Dimension, ...]:
    """Return what points of a format have besides x, y and z, in the order of the record."""
    found: list[Dimension] = []
    for i, (names, code) in enumerate(_FORMATS[point_format]):
        if isinstance(names, str):
            found.append(Dimension(names, f"field_{i}", np.dtype(code)))
            continue
        shift = 0
        for name, bits in names:
            found.append(Dimension(name, f"field_{i}", np.dtype(code), shift, bits))
            shift += bits
    return tuple(found)


def record_type(point_format: int, extras: Sequence[Extra]) -> np.dtype[Any]:
    """Return the structured type of a record: X, Y, Z, the format's fields, the extra bytes."""
    fields: list[Any] = [(axis, "<i4") for axis in "XYZ"]
    fields += [(f"field_{i}", code) for i, (_, code) in enumerate(_FORMATS[point_format])]
    for i, extra in enumerate(extras):
        shape = (extra.width,) if extra.width else ()
        fields.append((f"extra_{i}", extra.dtype, shape))
    return np.dtype(fields)


def holding(family: range, wanted: Collection[str], start: int) -> int:
    """Return the first format of `family` with all that `start` has and `wanted`, or `start`."""
    needed = {d.name for d in dimensions(start)} | set(wanted)
    for point_format in family:
        if needed <= {d.name for d in dimensions(point_format)}:
            return point_format
    return start


def parse_extras(descriptions: bytes, room: int, point_format: int) -> tuple[Extra, ...]:
    """
    Return what the `room` extra bytes of each record are.

    Bytes that are not described, or described as something that does not fit, become one attribute
    of single bytes: nothing is lost, only not understood.
    """
    taken = {"x", "y", "z", *(d.name for d in dimensions(point_format))}
    found: list[Extra] = []
    for place in range(0, len(descriptions) - _DESCRIPTION.size + 1, _DESCRIPTION.size):
        description = descriptions[place : place + _DESCRIPTION.size]
        code, options, raw_name, _ = _DESCRIPTION.unpack(description)
        if code == 0:
            dtype, width = np.dtype("u1"), options if options > 1 else 0
        else:
            dtype, width = np.dtype(_TYPES[(code - 1) % 10]), (0, 2, 3, 0)[min((code - 1) // 10, 3)]
        extra = Extra(_free_name(raw_name, taken), dtype, width, description)
        if code > 30 or (code == 0 and options == 0) or extra.size > room:
            break
        found.append(extra)
        taken.add(extra.name)
        room -= extra.size
    if room:
        name = _free_name(_UNDESCRIBED.encode(), taken)
        found.append(Extra(name, np.dtype("u1"), room if room > 1 else 0, b""))
    return tuple(found)


def _free_name(raw: bytes, taken: Collection[str]) -> str:
    """Return the name in `raw` made fit for an attribute, with a number if it is taken."""
    raw = raw.split(b"\0")[0]
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        name = raw.decode("latin-1")
    name = "".join(sign if sign.isprintable() else "_" for sign in name) or "unnamed"
    if name not in taken:
        return name
    return next(f"{name}_{i}" for i in count(2) if f"{name}_{i}" not in taken)


def describe(name: str, dtype: np.dtype[Any], width: int, taken: Collection[str]) -> Extra:
    """
    Describe a new attribute of `dtype`, (N,) or (N, width).

    LAS has numbers, pairs and triples of them; `width` above 3 is for uint8 alone. Names are cut
    to what 32 bytes hold, and numbered if that makes them equal to one in `taken`.
    """
    plain = dtype.newbyteorder("<")
    code = [np.dtype(code) for code in _TYPES].index(plain) + 1
    code, options = (0, width) if width > 3 else (code + 10 * max(0, width - 1), 0)
    for number in count(1):
        ending = f"_{number}" if number > 1 else ""
        room = _LONGEST_NAME - len(ending)
        stored = name.encode()[:room].decode(errors="ignore") + ending
        if stored not in taken:
            break
    return Extra(stored, plain, width, _DESCRIPTION.pack(code, options, stored.encode(), b""))


def unpack(
    records: Array, point_format: int, extras: Sequence[Extra], scale: Array, offset: Array
) -> tuple[npt.NDArray[np.float64], dict[str, Array]]:
    """Return positions (N, 3) and attributes of `records` (N,), none of them a view of these."""
    positions = np.empty((len(records), 3))
    for axis, name in enumerate("XYZ"):
        positions[:, axis] = records[name] * scale[axis] + offset[axis]
    attributes: dict[str, Array] = {}
    for d in dimensions(point_format):
        values = records[d.field]
        if d.bits:
            values = values >> d.shift & ((1 << d.bits) - 1)
        attributes[d.name] = values.astype(d.dtype.newbyteorder("="))
    for i, extra in enumerate(extras):
        attributes[extra.name] = records[f"extra_{i}"].astype(extra.dtype.newbyteorder("="))
    return positions, attributes


def store(records: Array, d: Dimension, values: Array) -> None:
    """Put `values` (N,) into `records` (N,), or refuse those the dimension cannot hold."""
    high = (1 << d.bits) - 1
    fits = values.ndim == 1 and values.dtype.kind in "biuf"
    if fits and values.dtype.newbyteorder("<") != d.dtype:
        numbers = values.view(np.uint8) if values.dtype.kind == "b" else values
        fits = holds(d.dtype, numbers)
    if not fits or (d.bits and values.max(initial=0) > high):
        kind = f"whole numbers of 0 to {high}" if d.bits else f"{d.dtype.name} numbers"
        raise FileFormatError(f"attribute '{d.name}' does not fit: LAS has {kind} there")
    if d.bits:
        records[d.field] |= values.astype(np.uint8) << np.uint8(d.shift)
    else:
        records[d.field] = values


def return_numbers(records: Array, point_format: int) -> Array:
    """Return which return of its pulse each of `records` (N,) is."""
    d = next(d for d in dimensions(point_format) if d.name == "return_number")
    numbers: Array = records[d.field] >> d.shift & ((1 << d.bits) - 1)
    return numbers

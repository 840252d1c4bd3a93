"""Room `cloud`: the header of a LAS file and the records around its points, byte for byte."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

from pointmend.errors import FileFormatError

EXTRA_BYTES = ("LASF_Spec", 4)
WAVEFORMS = ("LASF_Spec", 65535)
LASZIP = ("laszip encoded", 22204)

_HEAD = struct.Struct("<H16sHH32s")
_EXTENDED_HEAD = struct.Struct("<H16sHQ32s")
_SIZES = (227, 227, 227, 235, 375)  # of the headers of LAS 1.0 to 1.4
_COMPRESSED = 0x80
_MOST_PADDING = 1 << 24

# Where the fields stand that are read or written here; all others are carried along.
_FIELDS = {
    "global_encoding": (6, "<H"),
    "major": (24, "<B"),
    "minor": (25, "<B"),
    "software": (58, "<32s"),
    "creation": (90, "<2H"),
    "header_size": (94, "<H"),
    "points_at": (96, "<I"),
    "records": (100, "<I"),
    "point_format": (104, "<B"),
    "record_length": (105, "<H"),
    "legacy_count": (107, "<I"),
    "legacy_by_return": (111, "<5I"),
    "scale": (131, "<3d"),
    "offset": (155, "<3d"),
    "bounds": (179, "<6d"),
    "waveforms_at": (227, "<Q"),
    "extended_at": (235, "<Q"),
    "extended": (243, "<I"),
    "count": (247, "<Q"),
    "by_return": (255, "<15Q"),
}


@dataclass(frozen=True)
class Record:
    """
    A variable-length record: what a LAS file says about all points, such as their CRS.

    Parameters
    ----------
    head : bytes
        54 bytes, or 60 if it is an extended record (one that stands behind the points).
    data : bytes
        What it says.
    """

    head: bytes
    data: bytes

    @classmethod
    def new(cls, key: tuple[str, int], description: str, data: bytes) -> Record:
        """Make a record of user and number `key`, to stand before the points."""
        words = key[0].encode(), key[1], len(data), description.encode()
        return cls(_HEAD.pack(0, *words), data)

    @property
    def key(self) -> tuple[str, int]:
        """Who defined the record, and the number they gave it; together they say what it is."""
        user = self.head[2:18].split(b"\0")[0].decode("latin-1")
        return user, int.from_bytes(self.head[18:20], "little")

    def to_bytes(self) -> bytes:
        """Return the record as it stands in a file."""
        return self.head + self.data


@dataclass(frozen=True)
class Header:
    """The header of a LAS file as it stands there, `raw`."""

    raw: bytes

    def numbers(self, field: str) -> tuple[Any, ...]:
        """Return what stands in a field of several numbers."""
        place, code = _FIELDS[field]
        return struct.unpack_from(code, self.raw, place)

    def number(self, field: str) -> int:
        """Return what stands in a field of one number; 0 if this version has no such field."""
        place, code = _FIELDS[field]
        if place + struct.calcsize(code) > _SIZES[self.minor]:
            return 0
        return int(struct.unpack_from(code, self.raw, place)[0])

    def patched(self, **fields: Any) -> Header:
        """Return the header with other values in `fields`; those this version lacks are left."""
        raw = bytearray(self.raw)
        for name, value in fields.items():
            place, code = _FIELDS[name]
            if place + struct.calcsize(code) <= _SIZES[self.minor]:
                values = value if isinstance(value, tuple) else (value,)
                struct.pack_into(code, raw, place, *values)
        return Header(bytes(raw))

    @property
    def minor(self) -> int:
        """The 4 of LAS 1.4."""
        return self.raw[_FIELDS["minor"][0]]

    @property
    def is_compressed(self) -> bool:
        """Whether the points are LAZ."""
        return bool(self.number("point_format") & _COMPRESSED)

    @property
    def point_format(self) -> int:
        """Which of the point formats 0 to 10 the points have."""
        return self.number("point_format") & 0x3F

    @property
    def count(self) -> int:
        """Points in the file."""
        return self.number("count") or self.number("legacy_count")

    @property
    def repeats_count(self) -> bool:
        """Whether the old field of 32 bits has the count too, for readers older than LAS 1.4."""
        if self.count == 0:
            return self.point_format < 6
        return self.number("legacy_count") == self.count

    def with_format(self, point_format: int, record_length: int, compressed: bool) -> Header:
        """Return the header of a file with points in another format."""
        return self.patched(
            # Colours came with LAS 1.2, whose header is no longer than that of 1.0.
            minor=max(self.minor, 2) if point_format in (2, 3) else self.minor,
            point_format=point_format | (_COMPRESSED if compressed else 0),
            record_length=record_length,
        )

    def with_counts(self, count: int, by_return: tuple[int, ...]) -> Header:
        """Return the header of a file with `count` points; `by_return` are those of return 1-15."""
        repeats = count < 1 << 32 and (self.minor < 4 or self.repeats_count)
        return self.patched(
            count=count,
            by_return=by_return,
            legacy_count=count if repeats else 0,
            legacy_by_return=by_return[:5] if repeats else (0,) * 5,
        )


def new_header(minor: int) -> Header:
    """Return the header of a LAS file of our own, still without points."""
    raw = b"LASF".ljust(_SIZES[minor], b"\0")
    raw = raw[:24] + bytes([1, minor]) + raw[26:]
    return Header(raw).patched(software=b"pointmend", header_size=len(raw))


def read_header(file: BinaryIO) -> Header:
    """Read the header at the start of `file`; what it says of counts and places is checked here."""
    size = os.fstat(file.fileno()).st_size
    raw = file.read(_SIZES[0])
    if raw[:4] != b"LASF":
        raise FileFormatError("is not a LAS or LAZ file: it does not start with LASF")
    if len(raw) < _SIZES[0]:
        raise FileFormatError(f"LAS file ends after {len(raw)} bytes, in the middle of its header")
    header = Header(raw)
    major = raw[_FIELDS["major"][0]]
    if major != 1 or header.minor >= len(_SIZES):
        raise FileFormatError(f"is LAS {major}.{header.minor}; 1.0 to 1.4 are understood")
    declared = int(header.numbers("header_size")[0])
    if declared < _SIZES[header.minor]:
        raise FileFormatError(
            f"LAS header claims to have {declared} bytes, but LAS 1.{header.minor} "
            f"needs {_SIZES[header.minor]}"
        )
    header = Header(raw + file.read(declared - len(raw)))
    points_at = header.number("points_at")
    if len(header.raw) < declared or points_at > size:
        raise FileFormatError(f"LAS file is cut off: it ends after {size} bytes, before its points")
    if points_at < declared:
        raise FileFormatError(f"LAS header claims that points start at {points_at}, inside itself")
    if header.number("point_format") & 0x40 or header.point_format > 10:
        wrong = header.number("point_format")
        raise FileFormatError(f"has LAS point format {wrong}; 0 to 10 are understood")
    return header


def read_records(file: BinaryIO, header: Header) -> tuple[tuple[Record, ...], bytes]:
    """Read the records between header and points, and the bytes between the last and the points."""
    left = header.number("points_at") - len(header.raw)
    count = header.number("records")
    if count * _HEAD.size > left:
        raise FileFormatError(
            f"LAS header declares {count} variable-length records, but only {left} bytes "
            "lie before the points"
        )
    file.seek(len(header.raw))
    found: list[Record] = []
    for number in range(1, count + 1):
        head = file.read(_HEAD.size)
        length = _HEAD.unpack(head)[3] if left >= len(head) == _HEAD.size else 1 << 16
        left -= len(head) + length
        if left < 0:
            raise FileFormatError(
                f"LAS variable-length record {number} of {count} does not fit before the points"
            )
        found.append(Record(head, file.read(length)))
    if left > _MOST_PADDING:
        raise FileFormatError(f"LAS header leaves {left} bytes empty before the points")
    return tuple(found), file.read(left)


def read_extended_records(file: BinaryIO, header: Header) -> tuple[Record, ...]:
    """Read the records behind the points (LAS 1.4); of waveforms only the head, for their size."""
    size = os.fstat(file.fileno()).st_size
    count, place = header.number("extended"), header.number("extended_at")
    if count == 0:
        return ()
    if place < header.number("points_at") or place + count * _EXTENDED_HEAD.size > size:
        raise FileFormatError(
            f"LAS header declares {count} extended records from byte {place} on, but the file "
            f"has {size} bytes; it is cut off or its header is wrong"
        )
    found: list[Record] = []
    for number in range(1, count + 1):
        file.seek(place)
        head = file.read(_EXTENDED_HEAD.size)
        length = _EXTENDED_HEAD.unpack(head)[3] if len(head) == _EXTENDED_HEAD.size else size
        place += len(head) + length
        if place > size:
            raise FileFormatError(f"LAS extended record {number} of {count} is cut off")
        record = Record(head, b"")
        found.append(record if record.key == WAVEFORMS else Record(head, file.read(length)))
    return tuple(found)

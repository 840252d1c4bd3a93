"""Room `cloud`: the header of a PCD file, parsed and written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from pointmend.cloud.columns import is_number, repeated
from pointmend.errors import FileFormatError

ENCODINGS = ("ascii", "binary", "binary_compressed")
PADDING = "_"
_SIZES = {"F": (4, 8), "I": (1, 2, 4, 8), "U": (1, 2, 4, 8), "B": (1,)}
_COUNTS = ("WIDTH", "HEIGHT", "POINTS")
_PER_FIELD = ("SIZE", "TYPE", "COUNT")
# COLUMNS is what the oldest files call FIELDS.
_KEYS = tuple(
    key.encode()
    for key in ("VERSION", "FIELDS", "COLUMNS", *_PER_FIELD, *_COUNTS, "VIEWPOINT", "DATA")
)
_MAX_HEADER = 1 << 18
# The longest descriptors in use have some thousand numbers per point.
_MAX_ROW = 1 << 16


@dataclass(frozen=True)
class Field:
    """One field: `count` numbers of `size` bytes and type `kind` (F, I, U or B) per point."""

    name: str
    kind: str = "F"
    size: int = 4
    count: int = 1

    @property
    def code(self) -> str:
        """Numpy's code of the type, without byte order; B are bytes that mean true or false."""
        return f"{'u' if self.kind == 'B' else self.kind.lower()}{self.size}"

    @property
    def is_padding(self) -> bool:
        """Whether the field only fills space."""
        return self.name == PADDING

    @property
    def is_packed_colour(self) -> bool:
        """Whether the field is a colour whose four bytes are declared to be a float."""
        return self.name in ("rgb", "rgba") and self.code == "f4" and self.count == 1

    def with_type(self, dtype: np.dtype[Any], count: int = 1) -> Field:
        """Return the field with `count` numbers of `dtype`, a type PCD has."""
        if f"{dtype.kind}{dtype.itemsize}" == self.code:
            return replace(self, count=count)
        return Field(self.name, dtype.kind.upper(), dtype.itemsize, count)


@dataclass(frozen=True)
class Header:
    """
    What a PCD file says about itself.

    Parameters
    ----------
    encoding : str
        "ascii", "binary" or "binary_compressed".
    fields : tuple of Field
    width, height : int
        Points per row and rows of an organised cloud; height is 1 for any other.
    version : str
        As it stood.
    viewpoint : str or None
        Translation and quaternion of the sensor as they stood; older files have none.
    comments : tuple of str
        The lines that begin with #.
    charset : str
        How the header's text is encoded.
    """

    encoding: str
    fields: tuple[Field, ...]
    width: int
    height: int = 1
    version: str = "0.7"
    viewpoint: str | None = "0 0 0 1 0 0 0"
    comments: tuple[str, ...] = ("# .PCD v0.7 - Point Cloud Data file format",)
    charset: str = "utf-8"

    @property
    def points(self) -> int:
        """Points of the file."""
        return self.width * self.height

    @property
    def row_size(self) -> int:
        """Bytes of a point in a binary file."""
        return sum(f.size * f.count for f in self.fields)

    @property
    def row_words(self) -> int:
        """Numbers of a point."""
        return sum(f.count for f in self.fields)

    def to_bytes(self) -> bytes:
        """Return the header as it stands in a file, up to and including the DATA line."""
        lines = [
            *self.comments,
            f"VERSION {self.version}",
            "FIELDS " + " ".join(f.name for f in self.fields),
            "SIZE " + " ".join(str(f.size) for f in self.fields),
            "TYPE " + " ".join(f.kind for f in self.fields),
            "COUNT " + " ".join(str(f.count) for f in self.fields),
            f"WIDTH {self.width}",
            f"HEIGHT {self.height}",
            *([] if self.viewpoint is None else [f"VIEWPOINT {self.viewpoint}"]),
            f"POINTS {self.points}",
            f"DATA {self.encoding}",
            "",
        ]
        text = "\n".join(lines)
        try:
            return text.encode(self.charset)
        except UnicodeEncodeError:  # a name was added that the file's own charset lacks
            return text.encode("utf-8")


def read_header(file: BinaryIO) -> Header:
    """Read the header; `file` then stands at the first point."""
    raw: list[bytes] = []
    size = 0
    while not raw or raw[-1].split()[:1] != [b"DATA"]:
        line = file.readline(_MAX_HEADER)
        size += len(line)
        raw.append(line.rstrip(b"\r\n"))
        key = (line.split() or [b"#"])[0]
        if key not in _KEYS and not key.startswith(b"#"):
            shown = raw[-1][:40].decode("latin-1")
            raise FileFormatError(f"PCD header line {len(raw)} is not understood: {shown!r}")
        if size > _MAX_HEADER:
            raise FileFormatError(f"PCD header is longer than {_MAX_HEADER} bytes")
        if not line.endswith(b"\n") and key != b"DATA":
            raise FileFormatError("PCD header has no DATA line")
    charset = "utf-8"
    try:
        lines = [line.decode(charset) for line in raw]
    except UnicodeDecodeError:
        charset = "latin-1"
        lines = [line.decode(charset) for line in raw]
    return _parse(lines, charset)


def _parse(lines: list[str], charset: str) -> Header:
    comments: list[str] = []
    entries: dict[str, list[str]] = {}
    for line in lines:
        words = line.split()
        if not words:
            continue
        if words[0].startswith("#"):
            comments.append(line.rstrip())
            continue
        key = "FIELDS" if words[0] == "COLUMNS" else words[0]
        if key in entries:
            raise FileFormatError(f"PCD header has two {key} lines")
        entries[key] = words[1:]
    encoding = " ".join(entries["DATA"])
    if encoding not in ENCODINGS:
        raise FileFormatError(f"PCD data is '{encoding[:40]}'; known are {', '.join(ENCODINGS)}")
    viewpoint = entries.get("VIEWPOINT")
    if viewpoint is not None and not (len(viewpoint) == 7 and all(map(is_number, viewpoint))):
        raise FileFormatError("PCD header needs 7 numbers in its VIEWPOINT line")
    fields = _fields(entries)
    width, height = _shape(entries)
    return Header(
        encoding,
        fields,
        width,
        height,
        " ".join(entries.get("VERSION", ["0.7"])),
        None if viewpoint is None else " ".join(viewpoint),
        tuple(comments),
        charset,
    )


def _fields(entries: dict[str, list[str]]) -> tuple[Field, ...]:
    names = entries.get("FIELDS", [])
    if not names:
        raise FileFormatError("PCD header names no FIELDS")
    twice = repeated(name for name in names if name != PADDING)
    if twice is not None:
        raise FileFormatError(f"PCD header names field '{twice}' twice")
    for key in _PER_FIELD:
        found = len(entries.get(key, names))
        if found != len(names):
            raise FileFormatError(f"PCD header has {len(names)} FIELDS but {found} in {key}")
    # Before version 0.7 all numbers were floats.
    kinds = entries.get("TYPE", ["F"] * len(names))
    sizes = _whole_numbers("SIZE", entries.get("SIZE", ["4"] * len(names)))
    counts = _whole_numbers("COUNT", entries.get("COUNT", ["1"] * len(names)))
    for name, kind, size, count in zip(names, kinds, sizes, counts):
        if size not in _SIZES.get(kind, ()):
            raise FileFormatError(f"PCD field '{name}' has no type that exists: {kind[:9]} {size}")
        if count == 0:
            raise FileFormatError(f"PCD field '{name}' has COUNT 0")
    if sum(size * count for size, count in zip(sizes, counts)) > _MAX_ROW:
        raise FileFormatError(f"PCD header declares points of more than {_MAX_ROW} bytes")
    return tuple(map(Field, names, kinds, sizes, counts))


def _shape(entries: dict[str, list[str]]) -> tuple[int, int]:
    """Return width and height; files that leave some of the counts out mean one row of points."""
    found: dict[str, int] = {}
    for key in _COUNTS:
        numbers = _whole_numbers(key, entries.get(key, []))
        if key in entries and len(numbers) != 1:
            raise FileFormatError(f"PCD header needs one number in its {key} line")
        if numbers:
            found[key] = numbers[0]
    if "WIDTH" not in found and "POINTS" not in found:
        raise FileFormatError("PCD header tells neither WIDTH nor POINTS")
    height = found.get("HEIGHT") or 1
    width = found.get("WIDTH", 0)
    if width == 0 and height == 1:
        width = found.get("POINTS", 0)
    points = found.get("POINTS", width * height)
    if width * height != points:
        raise FileFormatError(
            f"PCD header declares {points} POINTS but WIDTH {width} and HEIGHT {height}"
        )
    return width, height


def _whole_numbers(key: str, words: list[str]) -> list[int]:
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) <= 18):
            raise FileFormatError(f"PCD header has {word[:20]!r} in its {key} line")
    return [int(word) for word in words]

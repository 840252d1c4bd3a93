"""Room `cloud`: the header of a PLY file, parsed and written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from pointmend.cloud.columns import repeated
from pointmend.errors import FileFormatError

# Each type has two words in use; the first is the one of the original description.
_WORDS = {
    "i1": ("char", "int8"),
    "u1": ("uchar", "uint8"),
    "i2": ("short", "int16"),
    "u2": ("ushort", "uint16"),
    "i4": ("int", "int32"),
    "u4": ("uint", "uint32"),
    "f4": ("float", "float32"),
    "f8": ("double", "float64"),
}
_CODES = {word: code for code, words in _WORDS.items() for word in words}
_BYTE_ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
_MAX_HEADER = 1 << 20


@dataclass(frozen=True)
class Property:
    """One property: a number, or with `count_word` a list whose length has that type."""

    name: str
    word: str
    count_word: str | None = None

    @property
    def code(self) -> str:
        """Numpy's code of the type, without byte order."""
        return _CODES[self.word]

    @property
    def count_code(self) -> str:
        """Numpy's code of the length of a list, without byte order."""
        return _CODES[self.count_word or ""]

    def with_type(self, dtype: np.dtype[Any]) -> Property:
        """Return the property with the type of `dtype`, in the file's own word if it has one."""
        code = f"{dtype.kind}{dtype.itemsize}"
        return self if code == self.code else Property(self.name, _WORDS[code][0])

    def line(self) -> str:
        """Return the header line."""
        kind = f"list {self.count_word} {self.word}" if self.count_word else self.word
        return f"property {kind} {self.name}"


@dataclass(frozen=True)
class Element:
    """A table of the file: `count` rows of `properties`."""

    name: str
    count: int
    properties: tuple[Property, ...]

    @property
    def has_lists(self) -> bool:
        """Whether rows can differ in length."""
        return any(p.count_word for p in self.properties)

    def smallest_row(self, ascii_: bool) -> int:
        """Return the fewest bytes a row can take: what a believable count is checked against."""
        if ascii_:
            return 2 * len(self.properties)  # one digit and one separator each
        return sum(
            np.dtype(p.count_code if p.count_word else p.code).itemsize for p in self.properties
        )


@dataclass(frozen=True)
class Header:
    """
    What a PLY file says about itself.

    Parameters
    ----------
    encoding : str
        "ascii", "binary_little_endian" or "binary_big_endian".
    elements : tuple of Element
    notes : tuple of str
        The comment and obj_info lines, as they stood.
    charset : str
        How the header's text is encoded.
    """

    encoding: str
    elements: tuple[Element, ...]
    notes: tuple[str, ...] = ()
    charset: str = "utf-8"

    @property
    def is_ascii(self) -> bool:
        """Whether rows are lines of text."""
        return self.encoding == "ascii"

    @property
    def byte_order(self) -> str:
        """Numpy's sign for the byte order of the rows."""
        return _BYTE_ORDERS[self.encoding]

    def to_bytes(self) -> bytes:
        """Return the header as it stands in a file, up to and including end_header."""
        lines = ["ply", f"format {self.encoding} 1.0", *self.notes]
        for element in self.elements:
            lines.append(f"element {element.name} {element.count}")
            lines.extend(p.line() for p in element.properties)
        text = "\n".join([*lines, "end_header", ""])
        try:
            return text.encode(self.charset)
        except UnicodeEncodeError:  # a name was added that the file's own charset lacks
            return text.encode("utf-8")


def word_of(dtype: np.dtype[Any]) -> str:
    """Return the PLY word for a type that PLY has."""
    return _WORDS[f"{dtype.kind}{dtype.itemsize}"][0]


def read_header(file: BinaryIO) -> Header:
    """Read the header; `file` then stands at the first row."""
    magic = file.readline(8)
    if magic.rstrip(b"\r\n") != b"ply" or not magic.endswith(b"\n"):
        if magic.startswith(b"ply\r"):
            raise FileFormatError("PLY header has old Mac line ends; save it with line feeds")
        raise FileFormatError("not a PLY file: it does not begin with the line 'ply'")
    raw: list[bytes] = []
    size = len(magic)
    while True:
        line = file.readline(_MAX_HEADER)
        size += len(line)
        if not line.endswith(b"\n") and line.rstrip() != b"end_header":
            raise FileFormatError("PLY header has no end_header line")
        if size > _MAX_HEADER:
            raise FileFormatError(f"PLY header is longer than {_MAX_HEADER} bytes")
        raw.append(line.rstrip(b"\r\n"))
        if raw[-1].rstrip() == b"end_header":
            break
    charset = "utf-8"
    try:
        lines = [line.decode(charset) for line in raw[:-1]]
    except UnicodeDecodeError:
        charset = "latin-1"
        lines = [line.decode(charset) for line in raw[:-1]]
    return _parse(lines, charset)


def _parse(lines: list[str], charset: str) -> Header:
    encoding: str | None = None
    notes: list[str] = []
    elements: list[tuple[str, int, list[Property]]] = []
    for number, line in enumerate(lines, start=2):
        match line.split():
            case []:
                continue
            case ["comment" | "obj_info", *_]:
                notes.append(line)
            case ["format", kind, "1.0"] if kind in _BYTE_ORDERS and encoding is None:
                encoding = kind
            case ["element", name, count] if count.isascii() and count.isdigit():
                if len(count) > 18:
                    raise FileFormatError(f"PLY header declares {count[:20]}... rows of {name}")
                elements.append((name, int(count), []))
            case ["property", "list", count_word, word, name] if elements:
                if _CODES.get(count_word, "f")[0] == "f" or word not in _CODES:
                    raise FileFormatError(
                        f"PLY header line {number}: no list type '{count_word} {word}'"
                    )
                elements[-1][2].append(Property(name, word, count_word))
            case ["property", word, name] if elements:
                if word not in _CODES:
                    raise FileFormatError(f"PLY header line {number}: no number type '{word}'")
                elements[-1][2].append(Property(name, word))
            case _:
                raise FileFormatError(f"PLY header line {number} is not understood: {line[:60]!r}")
    if encoding is None:
        raise FileFormatError("PLY header has no format line (ascii or binary, version 1.0)")
    header = Header(
        encoding,
        tuple(Element(name, count, tuple(found)) for name, count, found in elements),
        tuple(notes),
        charset,
    )
    _check(header)
    return header


def _check(header: Header) -> None:
    twice = repeated(element.name for element in header.elements)
    if twice is not None:
        raise FileFormatError(f"PLY header declares element '{twice}' twice")
    for element in header.elements:
        twice = repeated(p.name for p in element.properties)
        if twice is not None:
            raise FileFormatError(f"PLY element '{element.name}' has property '{twice}' twice")
        if element.count and not element.properties:
            raise FileFormatError(f"PLY element '{element.name}' has rows but no property")
    if all(element.name != "vertex" for element in header.elements):
        raise FileFormatError("PLY file has no element 'vertex', so no points")

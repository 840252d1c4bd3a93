"""Room `cloud`: what follows the header of a PLY file, taken apart into its elements."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.columns import fault_of_row
from pointmend.cloud.ply_header import Element, Header
from pointmend.cloud.ply_rows import Array, Lists, end_of_rows, parse_rows, read_rows
from pointmend.errors import FileFormatError


def check_counts(header: Header, size: int) -> None:
    """Compare the declared counts with the `size` bytes that follow the header."""
    # The last separator of an ascii file may be missing.
    needed = sum(e.count * e.smallest_row(header.is_ascii) for e in header.elements)
    if needed - header.is_ascii > size:
        listed = ", ".join(f"{e.count} {e.name}" for e in header.elements)
        raise FileFormatError(
            f"PLY header declares {listed}: at least {needed} bytes, but {size} follow; "
            "the file is cut off or its header is wrong"
        )


# The columns (N,) of the vertices, the rows of the other elements, and what follows the last.
Elements = tuple[dict[str, Array | Lists], dict[str, bytes], bytes]


def binary_elements(header: Header, body: bytes) -> Elements:
    """Take the `body` of a binary file apart."""
    flat = np.frombuffer(body, dtype=np.uint8)
    order = header.byte_order
    columns: dict[str, Array | Lists] = {}
    raw: dict[str, bytes] = {}
    place = 0
    for element in header.elements:
        size = element.count * element.smallest_row(ascii_=False)
        if place + size > len(body):
            raise FileFormatError(
                f"PLY file ends before its {element.count} rows of {element.name}"
            )
        start = place
        if element.name == "vertex" and element.has_lists:
            columns, place = read_rows(flat, start, element, order)
        elif element.has_lists:
            place = end_of_rows(flat, start, element, order)
        else:
            place = start + size
        if element.name != "vertex":
            raw[element.name] = body[start:place]
        elif not element.has_lists:
            rows = np.frombuffer(body, row_type(element, order), element.count, start)
            columns = {p.name: rows[p.name] for p in element.properties}
    trailing = body[place:]
    check_trailing(header, len(trailing))
    return columns, raw, trailing


def check_trailing(header: Header, size: int) -> None:
    """Refuse a file in which further rows could follow the last one; a line feed is harmless."""
    if any(e.name == "vertex" and size >= e.smallest_row(False) for e in header.elements):
        raise FileFormatError(
            f"PLY file has {size} bytes after the rows its header declares; "
            "the counts in the header are wrong"
        )


def row_type(element: Element, order: str) -> np.dtype[Any]:
    """Return the type of a binary row without lists."""
    return np.dtype([(p.name, order + p.code) for p in element.properties])


def ascii_elements(header: Header, body: bytes) -> Elements:
    """Take the `body` of a text file apart."""
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n")
    body = re.sub(rb"^[ \t]*\n", b"", body, flags=re.MULTILINE)
    if body.strip(b" \t\n") and not body.endswith(b"\n"):
        body += b"\n"
    ends = np.flatnonzero(np.frombuffer(body, dtype=np.uint8) == ord("\n")) + 1
    columns: dict[str, Array | Lists] = {}
    raw: dict[str, bytes] = {}
    line = place = 0
    for element in header.elements:
        if line + element.count > len(ends):
            raise FileFormatError(
                f"PLY file ends after {len(ends) - line} of {element.count} rows of {element.name}"
            )
        line += element.count
        end = int(ends[line - 1]) if line else 0
        rows = body[place:end]
        place = end
        if element.name == "vertex":
            columns = _ascii_columns(rows, element)
        else:
            raw[element.name] = rows
            # Only the last row is looked at: that is the one a cut-off file has damaged.
            parse_rows(_lines(rows)[-1:], element)
    if body[place:].strip():
        raise FileFormatError(
            "PLY file has rows after those its header declares; the counts in the header are wrong"
        )
    return columns, raw, b""


def _lines(rows: bytes) -> list[str]:
    return rows.decode("latin-1").split("\n")[:-1]


def _ascii_columns(rows: bytes, element: Element) -> dict[str, Array | Lists]:
    columns: dict[str, Array | Lists]
    if element.has_lists:
        columns = parse_rows(_lines(rows), element)
    elif element.count == 0:
        columns = {p.name: np.empty(0) for p in element.properties}
    else:
        columns = dict(zip((p.name for p in element.properties), _ascii_table(rows, element).T))
    return columns


def _ascii_table(rows: bytes, element: Element) -> npt.NDArray[np.float64]:
    """Return the numbers (N, properties); float64 holds every type PLY has."""
    width = len(element.properties)
    try:
        table = np.loadtxt(io.BytesIO(rows), dtype=np.float64, comments=None, ndmin=2)
        if table.shape == (element.count, width):
            return table
        reason = f"rows have {table.shape[1]} values where {width} are declared"
    except ValueError as error:
        reason = str(error).split(";")[0]
    for row, line in enumerate(_lines(rows), start=1):
        fault = fault_of_row(line.split(), width)
        if fault:
            reason = f"vertex {row} {fault}"
            break
    raise FileFormatError(f"PLY {reason}")

"""Room `cloud`: the rows of a PLY element that has lists, where every row has its own length."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.columns import is_number
from pointmend.cloud.ply_header import Element, Property
from pointmend.errors import FileFormatError

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Lists:
    """
    One list per point.

    Parameters
    ----------
    lengths : (N,) int64
    values : (sum of lengths,)
        The items of all lists one after the other.
    """

    lengths: Integers
    values: Array

    def take(self, index: npt.NDArray[np.intp]) -> Lists:
        """Return the lists of the points `index` (M,)."""
        starts = np.cumsum(self.lengths) - self.lengths
        lengths = self.lengths[index]
        return Lists(lengths, self.values[_runs(starts[index], lengths)])


@dataclass(frozen=True, eq=False)
class _Places:
    """Where each property of each row begins, (N,) per property, and where the rows end."""

    starts: list[Integers]
    lengths: dict[str, Integers]
    end: int


def _runs(starts: Integers, lengths: Integers, step: int = 1) -> Integers:
    """Return starts[i], starts[i] + step, ... (lengths[i] numbers) for every i, joined."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before * step, lengths) + np.arange(int(lengths.sum())) * step


def _gather(body: Bytes, starts: Integers, dtype: np.dtype[Any]) -> Array:
    """Return the numbers of type `dtype` that begin at the bytes `starts` (M,) of `body`."""
    found: Array = body[starts[:, np.newaxis] + np.arange(dtype.itemsize)].view(dtype)
    return found.reshape(-1)


def _scatter(body: Bytes, starts: Integers, values: Array) -> None:
    places = starts[:, np.newaxis] + np.arange(values.dtype.itemsize)
    body[places] = np.ascontiguousarray(values).view(np.uint8).reshape(places.shape)


def _place(element: Element, starts: Integers, lengths: dict[str, Integers]) -> list[Integers]:
    """Return where each property begins in rows that begin at `starts` (N,), and the row ends."""
    places = [starts]
    for p in element.properties:
        size = np.dtype(p.code).itemsize
        if p.count_word:
            items = lengths[p.name] * size
            places.append(places[-1] + items + np.dtype(p.count_code).itemsize)
        else:
            places.append(places[-1] + size)
    return places


def _scan(body: Bytes, offset: int, element: Element, order: str) -> _Places:
    """Find every property in the rows of `element`, which begin at byte `offset` of `body`."""
    lists = [p for p in element.properties if p.count_word]
    lengths = _equal_lengths(body, offset, element, order)
    if lengths is None:
        lengths = _walk(body, offset, element, order)
    sizes = np.full(element.count, element.smallest_row(ascii_=False), dtype=np.int64)
    for p in lists:
        sizes += lengths[p.name] * np.dtype(p.code).itemsize
    starts = offset + np.cumsum(sizes) - sizes
    return _Places(_place(element, starts, lengths), lengths, offset + int(sizes.sum()))


def _equal_lengths(
    body: Bytes, offset: int, element: Element, order: str
) -> dict[str, Integers] | None:
    """Return the lengths if all rows are like the first one (triangles, mostly), else None."""
    try:
        first = _walk(body, offset, Element(element.name, 1, element.properties), order)
    except FileFormatError:
        return None
    row = _place(element, np.array([offset], dtype=np.int64), first)
    step = int(row[-1][0]) - offset
    if offset + step * element.count > len(body):
        return None
    shifts = np.arange(element.count, dtype=np.int64) * step
    for p, start in zip(element.properties, row):
        if p.count_word:
            counts = _gather(body, start + shifts, np.dtype(order + p.count_code))
            if not np.all(counts == first[p.name][0]):
                return None
    return {name: np.full(element.count, length[0]) for name, length in first.items()}


def _walk(body: Bytes, offset: int, element: Element, order: str) -> dict[str, Integers]:
    """Read the lengths row by row."""
    steps: list[tuple[list[int], int, struct.Struct, int]] = []
    found: dict[str, list[int]] = {}
    skip = 0
    for p in element.properties:
        size = np.dtype(p.code).itemsize
        if p.count_word:
            count = struct.Struct(order + np.dtype(p.count_code).char)
            found[p.name] = []
            steps.append((found[p.name], skip, count, size))
            skip = 0
        else:
            skip += size
    view, place = body.data, offset
    for row in range(element.count):
        try:
            for lengths, before, count, size in steps:
                place += before
                (length,) = count.unpack_from(view, place)
                if length < 0:
                    raise FileFormatError(
                        f"PLY {element.name} {row + 1} has a list of {length} items"
                    )
                lengths.append(length)
                place += count.size + length * size
            place += skip
        except struct.error:
            place = len(view) + 1
        if place > len(view):
            raise FileFormatError(
                f"PLY file ends in {element.name} {row + 1} of {element.count}: "
                "it is cut off, or its byte order or a list length is wrong"
            )
    return {name: np.array(lengths, dtype=np.int64) for name, lengths in found.items()}


def end_of_rows(body: Bytes, offset: int, element: Element, order: str) -> int:
    """Return where the rows of `element` that begin at byte `offset` of `body` end."""
    return _scan(body, offset, element, order).end if element.count else offset


def read_rows(
    body: Bytes, offset: int, element: Element, order: str
) -> tuple[dict[str, Array | Lists], int]:
    """
    Read the binary rows of an element with lists.

    Returns
    -------
    columns : dict
        (N,) array or `Lists` per property, in native byte order.
    end : int
        The byte of `body` after the last row.
    """
    if not element.count:
        return {p.name: empty_column(p) for p in element.properties}, offset
    places = _scan(body, offset, element, order)
    columns: dict[str, Array | Lists] = {}
    for p, start in zip(element.properties, places.starts):
        dtype = np.dtype(order + p.code)
        if p.count_word:
            lengths = places.lengths[p.name]
            items = _runs(start + np.dtype(p.count_code).itemsize, lengths, dtype.itemsize)
            columns[p.name] = Lists(lengths, _native(_gather(body, items, dtype)))
        else:
            columns[p.name] = _native(_gather(body, start, dtype))
    return columns, places.end


def rows_to_bytes(element: Element, columns: dict[str, Array | Lists], order: str) -> bytes:
    """Return the binary rows of an element with lists; the inverse of `read_rows`."""
    lengths = {name: c.lengths for name, c in columns.items() if isinstance(c, Lists)}
    places = _place(element, np.zeros(element.count, dtype=np.int64), lengths)
    sizes = places[-1]
    starts = np.cumsum(sizes) - sizes
    body = np.zeros(int(sizes.sum()), dtype=np.uint8)
    for p, place in zip(element.properties, places):
        column, dtype = columns[p.name], np.dtype(order + p.code)
        if isinstance(column, Lists):
            count = np.dtype(order + p.count_code)
            _scatter(body, starts + place, column.lengths.astype(count))
            items = _runs(starts + place + count.itemsize, column.lengths, dtype.itemsize)
            _scatter(body, items, column.values.astype(dtype))
        else:
            _scatter(body, starts + place, column.astype(dtype))
    return body.tobytes()


def parse_rows(lines: list[str], element: Element) -> dict[str, Array | Lists]:
    """Read the text rows of an element with lists; scalars come as float64, to be checked."""
    scalars: dict[str, list[float]] = {p.name: [] for p in element.properties}
    lengths: dict[str, list[int]] = {p.name: [] for p in element.properties if p.count_word}
    for row, line in enumerate(lines, start=1):
        words = line.split()
        wrong = next((word for word in words if not is_number(word)), None)
        if wrong is not None:
            raise FileFormatError(
                f"PLY {element.name} {row} has {wrong[:40]!r} where a number is expected"
            )
        at = 0
        for p in element.properties:
            length = 1
            if p.count_word:
                length = int(words[at]) if at < len(words) and words[at].isdigit() else -1
                lengths[p.name].append(length)
                at += 1
            if length < 0 or at + length > len(words):
                raise FileFormatError(f"PLY {element.name} {row} is too short for '{p.name}'")
            scalars[p.name].extend(map(float, words[at : at + length]))
            at += length
        if at != len(words):
            raise FileFormatError(f"PLY {element.name} {row} has values left over")
    columns: dict[str, Array | Lists] = {}
    for p in element.properties:
        values = np.array(scalars[p.name], dtype=np.float64)
        if p.count_word:
            counts = np.array(lengths[p.name], dtype=np.int64)
            columns[p.name] = Lists(counts, values)
        else:
            columns[p.name] = values
    return columns


def empty_column(p: Property) -> Array | Lists:
    """Return the column of a property that has no rows."""
    empty = np.empty(0, dtype=p.code)
    return Lists(np.empty(0, dtype=np.int64), empty) if p.count_word else empty


def _native(values: Array) -> Array:
    return values.astype(values.dtype.newbyteorder("="))

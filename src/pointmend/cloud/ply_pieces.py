"""Room `cloud`: binary PLY files that need not fit into memory, read and written in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pointmend.cloud.columns import find_xyz
from pointmend.cloud.ply import (
    PlyLayout,
    cloud_of,
    layout_of,
    vertex_columns,
    write_binary,
)
from pointmend.cloud.ply_elements import check_counts, check_trailing, row_type
from pointmend.cloud.ply_header import Element, Header, read_header
from pointmend.cloud.ply_rows import Array, Bytes, Lists, end_of_rows
from pointmend.cloud.point_cloud import PointCloud
from pointmend.cloud.precision import holds
from pointmend.errors import FileFormatError, NotInPieces

_ROWS_OF_LISTS = 1 << 16
_COPIED_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class PlySource:
    """
    The file that a piece of a cloud came from: its other elements stay there until written again.

    Parameters
    ----------
    path : Path
    changed : int
        When the file was last changed, in nanoseconds: its bytes are of no use after that.
    header : Header
        Of the whole file.
    before, after : tuple of int
        From which byte to which stands what comes before the vertices, and after them.
    """

    path: Path
    changed: int
    header: Header
    before: tuple[int, int]
    after: tuple[int, int]


class PlyPieceReader:
    """
    An open binary PLY file.

    Parameters
    ----------
    file : BinaryIO
    source : PlySource
        What each piece remembers of the file.
    """

    def __init__(self, file: BinaryIO, source: PlySource) -> None:
        self._file = file
        self._source = source
        self._vertex = PlyLayout(source.header).vertex

    @property
    def count(self) -> int:
        """Points of the whole file."""
        return self._vertex.count

    def pieces(self, rows: int) -> Iterator[PointCloud]:
        """
        Yield the points in file order, `rows` at a time, with all attributes.

        A file without points gives one piece without points, from which a file can be made again.
        """
        header = self._source.header
        row = row_type(self._vertex, header.byte_order)
        for start in range(0, max(self.count, 1), rows):
            count = min(rows, self.count - start)
            self._file.seek(self._source.before[1] + start * row.itemsize)
            content = self._file.read(count * row.itemsize)
            if len(content) < count * row.itemsize:
                raise FileFormatError("PLY file became shorter while it was read")
            table = np.frombuffer(content, dtype=row)
            columns: dict[str, Array | Lists] = {
                p.name: table[p.name] for p in self._vertex.properties
            }
            vertex = replace(self._vertex, count=count)
            piece = cloud_of(replace(header, elements=(vertex,)), columns, {}, b"")
            layout = replace(layout_of(piece), source=self._source)
            yield replace(piece, metadata={"ply": layout})


@contextmanager
def open_pieces(path: Path) -> Iterator[PlyPieceReader]:
    """Open a binary PLY file whose vertices have no lists, and check it as `ply.read` does."""
    with path.open("rb") as file:
        header = read_header(file)
        start = file.tell()
        status = os.fstat(file.fileno())
        check_counts(header, status.st_size - start)
        vertex = PlyLayout(header).vertex
        if header.is_ascii or vertex.has_lists:
            what = "text" if header.is_ascii else "vertices with lists"
            raise NotInPieces(f"PLY file has {what}, which can only be read as a whole")
        xyz = find_xyz([p.name for p in vertex.properties])
        if xyz is None:
            raise FileFormatError("PLY vertices have no x, y and z")
        if any(vertex.properties[i].code[0] != "f" for i in xyz):
            # Moved points need another type, and which one is not known before the last has come.
            raise NotInPieces("PLY file has whole numbers as coordinates; read it as a whole")
        first, last = _place_of_vertices(file, header, start, status.st_size)
        source = PlySource(
            path.absolute(), status.st_mtime_ns, header, (start, first), (last, status.st_size)
        )
        yield PlyPieceReader(file, source)


def _place_of_vertices(file: BinaryIO, header: Header, start: int, size: int) -> tuple[int, int]:
    """Return from which byte to which the vertices stand; the other elements are checked too."""
    first = last = place = start
    for element in header.elements:
        needed = element.count * element.smallest_row(ascii_=False)
        if place + needed > size:
            raise FileFormatError(
                f"PLY file ends before its {element.count} rows of {element.name}"
            )
        if element.name == "vertex":
            first, last = place, place + needed
        if element.has_lists:
            body = np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))
            place = _end_of_lists(body, place, element, header.byte_order)
        else:
            place += needed
    check_trailing(header, size - place)
    return first, last


def _end_of_lists(body: Bytes, place: int, element: Element, order: str) -> int:
    """Return where the rows of an element with lists end, some rows at a time."""
    for done in range(0, element.count, _ROWS_OF_LISTS):
        some = replace(element, count=min(_ROWS_OF_LISTS, element.count - done))
        try:
            place = end_of_rows(body, place, some, order)
        except FileFormatError as error:
            skipped = f" (after {done} others)" if done else ""
            raise FileFormatError(f"{error}{skipped}") from error
    return place


class PlyPieceWriter:
    """
    A binary PLY file whose vertices are being written.

    Parameters
    ----------
    file : BinaryIO
        Stands at the first vertex.
    header : Header
        As written.
    layout : PlyLayout
        Of the template; its types of coordinates are kept.
    """

    def __init__(self, file: BinaryIO, header: Header, layout: PlyLayout) -> None:
        self._file = file
        self._header = header
        self._vertex = PlyLayout(header).vertex
        self._layout = layout
        self.missing = self._vertex.count

    def append(self, piece: PointCloud) -> None:
        """Add points with the attributes the template had."""
        self.missing -= len(piece)
        if self.missing < 0:
            raise FileFormatError(f"more than the announced {self._vertex.count} points came")
        found, columns = vertex_columns(piece, self._layout)
        names = [p.name for p in found]
        if names != [p.name for p in self._vertex.properties]:
            raise FileFormatError(f"a piece has other columns than the first: {', '.join(names)}")
        xyz = find_xyz(names) or ()
        for i, p in enumerate(self._vertex.properties):
            column = columns[p.name]
            assert not isinstance(column, Lists)  # create_pieces refuses lists
            fits = _can_round if i in xyz else _is_same
            if not fits(column, np.dtype(p.code)):
                raise FileFormatError(f"'{p.name}' of a piece has numbers that no {p.word} holds")
        rows = replace(self._vertex, count=len(piece))
        write_binary(self._file, self._header, rows, columns)


def _can_round(values: Array, dtype: np.dtype[Any]) -> bool:
    """Tell whether float64 `values` (M,) stay finite in `dtype`."""
    with np.errstate(over="ignore"):
        return bool(np.all(np.isfinite(values.astype(dtype)) | ~np.isfinite(values)))


def _is_same(values: Array, dtype: np.dtype[Any]) -> bool:
    return values.dtype == dtype or holds(dtype, values)


@contextmanager
def create_pieces(template: PointCloud, count: int, path: Path) -> Iterator[PlyPieceWriter]:
    """
    Write a binary PLY file as `ply.write` does, but point by point.

    The coordinates keep the types that the template's file has for them: whether float32 became too
    coarse for points that moved far is not known before the last one has come.

    If all points of the template's file come again, so do its other elements: those of a piece are
    copied from the file it is a piece of.
    """
    layout = replace(layout_of(template), resolution=np.inf)
    if layout.header.is_ascii or layout.vertex.has_lists:
        raise NotInPieces("PLY text and lists can only be written as a whole")
    origin = layout.source.header if layout.source else layout.header
    vertex = PlyLayout(origin).vertex
    before: Iterable[bytes] = ()
    after: Iterable[bytes] = ()
    elements: tuple[Element, ...] = (vertex,)
    if vertex.count == count:
        elements = origin.elements
        before, after = _other_rows(layout)
    properties, _ = vertex_columns(template, layout)
    written = Element("vertex", count, tuple(properties))
    elements = tuple(written if e.name == "vertex" else e for e in elements)
    header = replace(layout.header, elements=elements)
    with path.open("wb") as file:
        file.write(header.to_bytes())
        file.writelines(before)
        writer = PlyPieceWriter(file, header, layout)
        yield writer
        if writer.missing:
            raise FileFormatError(f"{writer.missing} of the announced {count} points did not come")
        file.writelines(after)


def _other_rows(layout: PlyLayout) -> tuple[Iterable[bytes], Iterable[bytes]]:
    """Return the bytes that stand before the vertices and after them, bit by bit."""
    if layout.source:
        source = layout.source
        return _copied(source, *source.before), _copied(source, *source.after)
    names = [element.name for element in layout.header.elements]
    place = names.index("vertex")
    after = [layout.raw[name] for name in names[place + 1 :]]
    return [layout.raw[name] for name in names[:place]], [*after, layout.trailing]


def _copied(source: PlySource, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of the source from `start` to `end`."""
    if start == end:
        return
    with source.path.open("rb") as file:
        if os.fstat(file.fileno()).st_mtime_ns != source.changed:
            raise FileFormatError(
                f"{source.path} was changed meanwhile, so that its other elements cannot be copied"
            )
        file.seek(start)
        while start < end:
            content = file.read(min(end - start, _COPIED_AT_ONCE))
            if not content:
                raise FileFormatError(f"{source.path} became shorter while it was copied")
            yield content
            start += len(content)

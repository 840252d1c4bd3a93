"""Room `cloud`: PLY files; what is not understood here is carried through untouched."""

from __future__ import annotations

import io
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from pointmend.cloud.columns import (
    decimal_strings,
    find_xyz,
    flat_columns,
    write_decimal_rows,
)
from pointmend.cloud.format import Format, PieceReader, Pieces, PieceWriter
from pointmend.cloud.ply_elements import ascii_elements, binary_elements, check_counts, row_type
from pointmend.cloud.ply_header import Element, Header, Property, read_header, word_of
from pointmend.cloud.ply_rows import Array, Lists, rows_to_bytes
from pointmend.cloud.point_cloud import PerPoint, PointCloud
from pointmend.cloud.precision import decimals_fit_float32, holds, resolution, stored_type
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from pointmend.cloud.ply_pieces import PlySource

_XYZ = tuple(Property(name, "double") for name in "xyz")
_ROWS_PER_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class PlyLayout(PerPoint):
    """
    What a PLY file had beyond positions and attributes; kept as `metadata["ply"]`.

    Parameters
    ----------
    header : Header
        As read; x, y and z have the type they are to be written in if it still holds them.
    resolution : float
        What the file's coordinates could tell apart.
    lists : dict of Lists
        The list properties of the vertices.
    raw : dict of bytes
        The rows of all other elements, as they stood.
    trailing : bytes
        What followed the last element.
    source : PlySource or None
        For a piece of a file, where the rest of the file is.
    """

    header: Header
    resolution: float = 0.0
    lists: dict[str, Lists] = field(default_factory=dict)
    raw: dict[str, bytes] = field(default_factory=dict)
    trailing: bytes = b""
    source: PlySource | None = None

    @property
    def vertex(self) -> Element:
        """The element that holds the points."""
        return next(e for e in self.header.elements if e.name == "vertex")

    def __len__(self) -> int:
        return self.vertex.count

    def take(self, index: npt.NDArray[np.intp]) -> PlyLayout:
        """
        Return the layout for the points `index` (M,).

        The other elements are dropped unless all points stay in place: faces and range grids name
        points by number, and would name the wrong ones. (Points of a piece can still be followed by
        others; whether all came is seen when all are written.)
        """
        if np.array_equal(index, np.arange(len(self))):
            return self
        vertex = replace(self.vertex, count=len(index))
        return PlyLayout(
            replace(self.header, elements=(vertex,)),
            self.resolution,
            {name: lists.take(index) for name, lists in self.lists.items()},
            source=self.source,
        )


def read(path: Path) -> PointCloud:
    """Read a PLY file, ascii or binary of either byte order."""
    with path.open("rb") as file:
        header = read_header(file)
        left = os.fstat(file.fileno()).st_size - file.tell()
        check_counts(header, left)
        body = file.read()
    elements = ascii_elements if header.is_ascii else binary_elements
    columns, raw, trailing = elements(header, body)
    return cloud_of(header, columns, raw, trailing)


def _typed(values: Array, p: Property) -> Array:
    """Return `values` (M,) in the declared type of `p`; ascii files can hold what does not fit."""
    dtype = np.dtype(p.code)
    if dtype.kind in "iu" and values.dtype.kind == "f":
        limits = np.iinfo(dtype)
        good = (values == np.rint(values)) & (values >= limits.min) & (values <= limits.max)
        if not np.all(good):
            wrong = values[~good][0]
            raise FileFormatError(f"PLY property '{p.name}' has {wrong}, which is no {p.word}")
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def cloud_of(
    header: Header, columns: dict[str, Array | Lists], raw: dict[str, bytes], trailing: bytes
) -> PointCloud:
    """Return the cloud whose vertices have the `columns` (N,)."""
    vertex = PlyLayout(header).vertex
    xyz = find_xyz([p.name for p in vertex.properties])
    if xyz is None or any(vertex.properties[i].count_word for i in xyz):
        raise FileFormatError("PLY vertices have no x, y and z")
    properties = list(vertex.properties)
    positions = np.empty((vertex.count, 3))
    for axis, i in enumerate(xyz):
        column = columns[properties[i].name]
        assert not isinstance(column, Lists)  # its property has no count_word
        positions[:, axis] = column
    single = [axis for axis, i in enumerate(xyz) if properties[i].code == "f4"]
    if header.is_ascii and not decimals_fit_float32(positions[:, single]):
        for axis in single:
            properties[xyz[axis]] = Property(properties[xyz[axis]].name, "double")
    attributes: dict[str, Array] = {}
    lists: dict[str, Lists] = {}
    for i, p in enumerate(properties):
        column = columns[p.name]
        if isinstance(column, Lists):
            lists[p.name] = Lists(column.lengths, _typed(column.values, p))
        elif i in xyz:
            positions[:, xyz.index(i)] = _typed(column, p)
        else:
            attributes[p.name] = _typed(column, p)
    vertex = replace(vertex, properties=tuple(properties))
    elements = tuple(vertex if e.name == "vertex" else e for e in header.elements)
    coarsest = max(resolution(positions, np.dtype(properties[i].code)) for i in xyz)
    layout = PlyLayout(replace(header, elements=elements), coarsest, lists, raw, trailing)
    return PointCloud(positions, attributes, {"ply": layout})


def layout_of(cloud: PointCloud) -> PlyLayout:
    """Return the layout of the PLY file the cloud came from, or one for clouds from elsewhere."""
    layout = cloud.metadata.get("ply")
    if isinstance(layout, PlyLayout):
        return layout
    return PlyLayout(Header("binary_little_endian", (Element("vertex", len(cloud), _XYZ),)))


def precision(cloud: PointCloud) -> float:
    """Return how far writing may move a coordinate: nothing, or what a float32 file had."""
    return layout_of(cloud).resolution


def write(cloud: PointCloud, path: Path) -> None:
    """
    Write a PLY file.

    A cloud from a PLY file gets that file's encoding, comments, property names, types and order,
    and its other elements. Any other cloud becomes binary little endian with double coordinates.
    """
    layout = layout_of(cloud)
    properties, columns = vertex_columns(cloud, layout)
    vertex = Element("vertex", len(cloud), tuple(properties))
    elements = tuple(vertex if e.name == "vertex" else e for e in layout.header.elements)
    header = replace(layout.header, elements=elements)
    write_rows = _write_ascii if header.is_ascii else write_binary
    with path.open("wb") as file:
        file.write(header.to_bytes())
        for element in elements:
            if element.name == "vertex":
                write_rows(file, header, vertex, columns)
            else:
                file.write(layout.raw[element.name])
        file.write(layout.trailing)


def vertex_columns(
    cloud: PointCloud, layout: PlyLayout
) -> tuple[list[Property], dict[str, Array | Lists]]:
    """Return the vertex properties in the file's order, new ones last, and their columns."""
    spare = flat_columns(cloud.attributes, forbidden=r"\s+")
    declared = layout.vertex.properties
    xyz = find_xyz([p.name for p in declared]) or (0, 1, 2)
    properties: list[Property] = []
    columns: dict[str, Array | Lists] = {}
    values: Array
    for i, p in enumerate(declared):
        if i in xyz:
            values = cloud.positions[:, xyz.index(i)]
            dtype = stored_type(values, np.dtype(p.code), layout.resolution)
            properties.append(p.with_type(dtype))
            columns[p.name] = values
        elif p.count_word:
            properties.append(p)
            columns[p.name] = layout.lists[p.name]
        elif p.name in spare:
            values = _ply_number(p.name, spare.pop(p.name))
            properties.append(p.with_type(values.dtype))
            columns[p.name] = values
    for name, values in spare.items():
        if name in columns:
            raise FileFormatError(f"attribute '{name}' has the name of another column; rename it")
        columns[name] = values = _ply_number(name, values)
        properties.append(Property(name, word_of(values.dtype)))
    return properties, columns


def _ply_number(name: str, values: Array) -> Array:
    """Return `values` (N,) in a type PLY has, without changing one of them."""
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    if values.dtype == np.float16:
        return values.astype(np.float32)
    if values.dtype.itemsize <= 4 or values.dtype == np.float64:
        return values
    candidates = ("f8",) if values.dtype.kind == "f" else ("i4", "u4", "f8")
    for candidate in map(np.dtype, candidates):
        if holds(candidate, values):
            return values.astype(candidate)
    raise FileFormatError(
        f"attribute '{name}' has {values.dtype} numbers that no PLY type holds; leave it out"
    )


def write_binary(
    file: BinaryIO, header: Header, vertex: Element, columns: dict[str, Array | Lists]
) -> None:
    """Write the rows of the vertices."""
    if vertex.has_lists:
        file.write(rows_to_bytes(vertex, columns, header.byte_order))
        return
    row = row_type(vertex, header.byte_order)
    for start in range(0, vertex.count, _ROWS_PER_CHUNK):
        rows = np.empty(min(_ROWS_PER_CHUNK, vertex.count - start), dtype=row)
        for name, column in columns.items():
            assert not isinstance(column, Lists)
            rows[name] = column[start : start + len(rows)]
        file.write(rows.tobytes())


def _write_ascii(
    file: BinaryIO, header: Header, vertex: Element, columns: dict[str, Array | Lists]
) -> None:
    texts: list[Array | list[str]] = []
    for p in vertex.properties:
        column = columns[p.name]
        if isinstance(column, Lists):
            items = iter(decimal_strings(column.values))
            texts.append([" ".join([str(n), *islice(items, n)]) for n in column.lengths.tolist()])
        else:
            texts.append(column.astype(p.code))
    text = io.TextIOWrapper(file, encoding="ascii", newline="\n", write_through=True)
    if vertex.count:
        write_decimal_rows(text, texts, " ")
    text.detach()


def _open_pieces(path: Path) -> AbstractContextManager[PieceReader]:
    from pointmend.cloud.ply_pieces import open_pieces  # which is made of what stands here

    return open_pieces(path)


def _create_pieces(
    template: PointCloud, count: int, path: Path
) -> AbstractContextManager[PieceWriter]:
    from pointmend.cloud.ply_pieces import create_pieces

    return create_pieces(template, count, path)


FORMAT = Format(
    "PLY", (".ply",), read, write, precision, pieces=Pieces(_open_pieces, _create_pieces)
)

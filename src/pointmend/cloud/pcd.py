"""Room `cloud`: PCD files of the Point Cloud Library, in all three encodings."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pointmend.cloud.columns import find_xyz
from pointmend.cloud.format import Format
from pointmend.cloud.pcd_header import PADDING, Field, Header, read_header
from pointmend.cloud.pcd_rows import Array, check_count, read_columns, write_columns
from pointmend.cloud.point_cloud import PerPoint, PointCloud
from pointmend.cloud.precision import holds, resolution, stored_type
from pointmend.errors import FileFormatError

_XYZ = tuple(Field(name, "F", 8) for name in "xyz")


@dataclass(frozen=True, eq=False)
class PcdLayout(PerPoint):
    """
    What a PCD file had beyond positions and attributes; kept as `metadata["pcd"]`.

    Parameters
    ----------
    header : Header
        As read; x, y and z have the type they are to be written in if it still holds them.
    resolution : float
        What the file's coordinates could tell apart.
    padding : tuple of (N,) or (N, c) arrays
        What stood in the fields that only fill space, in order.
    """

    header: Header
    resolution: float = 0.0
    padding: tuple[Array, ...] = ()

    def __len__(self) -> int:
        return self.header.points

    def take(self, index: npt.NDArray[np.intp]) -> PcdLayout:
        """
        Return the layout for the points `index` (M,).

        Rows and columns of an organised cloud mean something only while all points are in place;
        a selection becomes one row.
        """
        if np.array_equal(index, np.arange(len(self))):
            return self
        return PcdLayout(
            replace(self.header, width=len(index), height=1),
            self.resolution,
            tuple(column[index] for column in self.padding),
        )


def read(path: Path) -> PointCloud:
    """
    Read a PCD file: ascii, binary or binary_compressed, organised or not.

    A field of several numbers becomes an attribute (N, c). Colours packed into a float keep their
    bits, whatever float they happen to be; ascii files that print these bits as a whole number
    give them as uint32.
    """
    with path.open("rb") as file:
        header = read_header(file)
        check_count(header, os.fstat(file.fileno()).st_size - file.tell())
        body = file.read()
    return _cloud(*read_columns(header, body))


def _cloud(header: Header, columns: list[Array]) -> PointCloud:
    names = [f.name for f in header.fields]
    xyz = find_xyz(names)
    if xyz is None or any(header.fields[i].count != 1 for i in xyz):
        raise FileFormatError("PCD fields have no x, y and z")
    with np.errstate(invalid="ignore"):  # some holes are NaNs that signal
        positions = np.stack([columns[i].astype(np.float64) for i in xyz], axis=1)
    coarsest = max(resolution(positions, columns[i].dtype) for i in xyz)
    fields = tuple(
        _declared(f, column, header.encoding) for f, column in zip(header.fields, columns)
    )
    padding = tuple(c for f, c in zip(fields, columns) if f.is_padding)
    attributes = {
        f.name: column
        for i, (f, column) in enumerate(zip(fields, columns))
        if i not in xyz and not f.is_padding
    }
    layout = PcdLayout(replace(header, fields=fields), coarsest, padding)
    return PointCloud(positions, attributes, {"pcd": layout})


def _declared(f: Field, values: Array, encoding: str) -> Field:
    """Return `f` as it is to be declared for `values` (N,) or (N, c)."""
    if encoding == "ascii" and f.is_packed_colour and values.dtype == np.uint32:
        return f  # bits of a float, printed as a whole number
    return f.with_type(values.dtype, _count(values))


def _count(values: Array) -> int:
    return values.shape[1] if values.ndim == 2 else 1


def _layout_of(cloud: PointCloud) -> PcdLayout:
    layout = cloud.metadata.get("pcd")
    if isinstance(layout, PcdLayout):
        return layout
    return PcdLayout(Header("binary", _XYZ, len(cloud)))


def precision(cloud: PointCloud) -> float:
    """Return how far writing may move a coordinate: nothing, or what a float32 file had."""
    return _layout_of(cloud).resolution


def _pcd_number(values: Array) -> Array | None:
    """Return `values` (N,) or (N, c) in a type PCD has, none of them changed; None if none has."""
    if values.ndim == 2 and values.shape[1] == 0:
        return None
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    if values.dtype == np.float16:
        return values.astype(np.float32)
    if values.dtype.kind not in "iuf":
        return None
    if values.dtype.itemsize > 8:
        return values.astype(np.float64) if holds(np.dtype(np.float64), values) else None
    return values


def losses(cloud: PointCloud) -> tuple[str, ...]:
    """Return what PCD cannot hold: attributes that are no real numbers of at most 64 bits."""
    return tuple(f"attribute '{n}'" for n, v in cloud.attributes.items() if _pcd_number(v) is None)


def write(cloud: PointCloud, path: Path) -> None:
    """
    Write a PCD file.

    A cloud from a PCD file gets that file's encoding, fields, types, viewpoint and, if all its
    points are there, its rows and columns. Any other cloud becomes binary with double coordinates.
    """
    layout = _layout_of(cloud)
    fields, columns = _columns(cloud, layout)
    header = replace(layout.header, fields=tuple(fields))
    with path.open("wb") as file, np.errstate(invalid="ignore"):
        file.write(header.to_bytes())
        write_columns(file, header, columns)


def _columns(cloud: PointCloud, layout: PcdLayout) -> tuple[list[Field], list[Array]]:
    """Return the fields in the file's order, new ones last, and their columns."""
    spare = _named(cloud.attributes)
    padding = iter(layout.padding)
    xyz = find_xyz([f.name for f in layout.header.fields]) or (0, 1, 2)
    encoding = layout.header.encoding
    fields: list[Field] = []
    columns: list[Array] = []
    for i, f in enumerate(layout.header.fields):
        if i in xyz:
            values: Array = cloud.positions[:, xyz.index(i)]
            fields.append(f.with_type(stored_type(values, np.dtype(f.code), layout.resolution)))
        elif f.is_padding:
            values = next(padding)
            fields.append(f)
        elif f.name in spare:
            values = spare.pop(f.name)
            fields.append(_declared(f, values, encoding))
        else:
            continue
        columns.append(values)
    for name, values in spare.items():
        if name in (f.name for f in fields):
            raise FileFormatError(f"attribute '{name}' has the name of another field; rename it")
        fields.append(Field(name).with_type(values.dtype, _count(values)))
        columns.append(values)
    return fields, columns


def _named(attributes: dict[str, Array]) -> dict[str, Array]:
    """Return what PCD can hold of `attributes` by the names it gets there, without blanks."""
    columns: dict[str, Array] = {}
    for name, values in attributes.items():
        number = _pcd_number(values)
        if number is None:
            continue
        shown = "_".join(name.split())
        if shown in columns or shown in ("x", "y", "z") or shown in ("", PADDING):
            raise FileFormatError(
                f"attribute '{name}' would be written as '{shown}', a name already taken; rename it"
            )
        columns[shown] = number[:, 0] if number.ndim == 2 and number.shape[1] == 1 else number
    return columns


FORMAT = Format("PCD", (".pcd",), read, write, precision, losses)

"""Room `cloud`: the vertices of Wavefront OBJ files; every other line is carried through."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pointmend.cloud.columns import write_decimal_rows
from pointmend.cloud.format import Format
from pointmend.cloud.point_cloud import PerPoint, PointCloud
from pointmend.cloud.vertices_lines import (
    COLOURS,
    Array,
    NumberLines,
    attribute_columns,
    lost_attributes,
    plain_numbers,
    span_of_content,
)
from pointmend.errors import FileFormatError

_VERTEX = re.compile(rb"^[ \t]*v[ \t]+([^#\r\n]*)", re.MULTILINE)
# What stands behind x, y and z, by how many numbers there are.
_NAMES: dict[int, tuple[str, ...]] = {4: ("w",), 6: COLOURS}


@dataclass(frozen=True, eq=False)
class ObjLayout(PerPoint):
    """
    The OBJ file that the points are the vertices of; kept as `metadata["obj"]`.

    Parameters
    ----------
    lines : NumberLines
        The file, its vertices being the rows that may change.
    names : tuple of str
        The attributes its vertex lines hold: none, a weight, or colours.
    whole_colours : bool
        Whether the colours are whole numbers up to 255 instead of parts of 1.
    """

    lines: NumberLines
    names: tuple[str, ...] = ()
    whole_colours: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, index: npt.NDArray[np.intp]) -> ObjLayout:
        """Return the layout for the points `index` (M,); faces name vertices by number and go."""
        if np.array_equal(index, np.arange(len(self))):
            return self
        texts = list(self.lines.texts())
        body = b"".join(b"v %b\n" % texts[i] for i in index)
        return ObjLayout(NumberLines(body, _spans(body)), self.names, self.whole_colours)


def read(path: Path) -> PointCloud:
    """
    Read the vertices in file order; faces, normals, groups and comments wait in the metadata.

    Vertex lines of six numbers give attributes `red`, `green` and `blue`, those of four a weight
    `w`. Other numbers stay in the file without becoming attributes.
    """
    body = path.read_bytes()
    if b"\0" in body:
        raise FileFormatError("is not an OBJ file but binary")
    if b"\n" not in body and b"\r" in body:
        raise FileFormatError("OBJ file has old Mac line ends; save it with line feeds")
    lines = NumberLines(body, _spans(body))
    if len(lines) == 0:
        raise FileFormatError("OBJ file has no vertices (lines 'v x y z')")
    table = lines.table()
    names = _NAMES.get(table.shape[1], ())
    attributes = attribute_columns(lines, table, names)
    whole = any(values.dtype == np.uint8 for values in attributes.values())
    return PointCloud(table[:, :3], attributes, {"obj": ObjLayout(lines, names, whole)})


def _spans(body: bytes) -> npt.NDArray[np.int64]:
    """Return where the numbers of the vertex lines begin and end, (N, 2)."""
    places = (place for found in _VERTEX.finditer(body) for place in span_of_content(found, 1))
    return np.fromiter(places, dtype=np.int64).reshape(-1, 2)


def _layout_of(cloud: PointCloud) -> ObjLayout | None:
    layout = cloud.metadata.get("obj")
    return layout if isinstance(layout, ObjLayout) else None


def _columns(cloud: PointCloud) -> dict[str, Array]:
    """Return the attributes that go behind x, y and z, (N,) each, as they are to be written."""
    layout = _layout_of(cloud)
    if layout is not None and layout.names == ("w",):
        weight = plain_numbers(cloud, "w")
        if weight is not None:
            return {"w": weight}
    found = {name: plain_numbers(cloud, name) for name in COLOURS}
    colours = {name: values for name, values in found.items() if values is not None}
    if len(colours) < len(COLOURS):
        return {}
    if layout is not None and not layout.names and layout.lines.has_rest():
        return {}  # its vertex lines have something else there
    kinds = {values.dtype.kind for values in colours.values()}
    if kinds == {"f"} or (layout is not None and layout.whole_colours and "f" not in kinds):
        return colours
    full = _full_scale(list(colours.values()))
    if full is None:
        return {}
    return {name: values / full for name, values in colours.items()}


def _full_scale(colours: list[Array]) -> int | None:
    """Return which whole number means 1 in `colours`, (N,) each; None if that cannot be known."""
    if any(values.dtype.kind not in "iu" for values in colours):
        return None
    full = 65535 if any(values.dtype == np.uint16 for values in colours) else 255
    fits = all(values.min(initial=0) >= 0 and values.max(initial=0) <= full for values in colours)
    return full if fits else None


def losses(cloud: PointCloud) -> tuple[str, ...]:
    """Return what OBJ cannot hold: all attributes but colours, or the weight its file had."""
    return lost_attributes(cloud, _columns(cloud))


def write(cloud: PointCloud, path: Path) -> None:
    """
    Write vertices, in the file they came from if that was an OBJ.

    All other lines of that file stay as they are (also the normals of vertices that moved, which
    cannot be told from those an artist set by hand), and so does the text of vertices that did not
    move. A cloud from elsewhere becomes lines `v x y z`, with colours from `red`, `green` and
    `blue` if it has them: whole numbers become parts of 1, as OBJ files have it.
    """
    if len(cloud) == 0:
        raise FileFormatError("an OBJ file needs at least one vertex; choose another format")
    layout = _layout_of(cloud)
    columns = _columns(cloud)
    values = [*cloud.positions.T, *columns.values()]
    if layout is None:
        with path.open("w", encoding="ascii", newline="\n") as file:
            write_decimal_rows(file, [["v"] * len(cloud), *values], " ")
        return
    path.write_bytes(layout.lines.with_columns(values, keep_rest=not (layout.names or columns)))


FORMAT = Format("OBJ", (".obj",), read, write, losses=losses)

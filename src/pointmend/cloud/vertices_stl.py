"""Room `cloud`: the vertices of STL files, three per facet, binary or ascii."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.format import Format
from pointmend.cloud.point_cloud import PerPoint, PointCloud
from pointmend.cloud.precision import resolution, stored_type
from pointmend.cloud.vertices_lines import NumberLines, lost_attributes, span_of_content
from pointmend.errors import FileFormatError

_FACET = np.dtype([("normal", "<f4", (3,)), ("vertices", "<f4", (3, 3)), ("extra", "<u2")])
_HEAD = 80
_START = _HEAD + 4
_TEXT = re.compile(
    rb"^[ \t]*(facet[ \t]+normal|vertex|endfacet|solid|endsolid)(?![^ \t\r\n])([^\r\n]*)",
    re.MULTILINE | re.IGNORECASE,
)
_FACET_WORDS = (b"facet", b"vertex", b"vertex", b"vertex", b"endfacet")


@dataclass(frozen=True, eq=False)
class _Binary:
    """The content of a binary file: 80 bytes of anything, the facets (F,), what follows them."""

    head: bytes
    facets: npt.NDArray[Any]
    trailing: bytes
    resolution: float


@dataclass(frozen=True, eq=False)
class _Text:
    """The content of an ascii file; four rows per facet may change: normal and corners."""

    rows: NumberLines


@dataclass(frozen=True, eq=False)
class StlLayout(PerPoint):
    """
    The STL file whose facets the points are the corners of; kept as `metadata["stl"]`.

    Parameters
    ----------
    count : int
        Points: three per facet.
    content : object or None
        The file; None once points were selected, since facets do not survive that.
    """

    count: int
    content: _Binary | _Text | None

    def __len__(self) -> int:
        return self.count

    def take(self, index: npt.NDArray[np.intp]) -> StlLayout:
        """Return the layout for the points `index` (M,): nothing unless all are in place."""
        if np.array_equal(index, np.arange(len(self))):
            return self
        return StlLayout(len(index), None)


def read(path: Path) -> PointCloud:
    """
    Read the corners of all facets in file order, three points per facet.

    A corner that several facets share stands in the file, and so in the cloud, several times.
    Normals, names and the two spare bytes of a facet wait in the metadata.
    """
    body = path.read_bytes()
    count = int.from_bytes(body[_HEAD:_START], "little")
    size = _START + count * _FACET.itemsize
    if len(body) >= _START and len(body) == size:
        return _read_binary(body, count)
    if body[:1024].lstrip().lower().startswith(b"solid") and b"\0" not in body:
        return _read_text(body)
    if len(body) < _START:
        raise FileFormatError("not an STL file: it is shorter than its header")
    if not size <= len(body) < size + _FACET.itemsize:
        raise FileFormatError(
            f"STL file declares {count} facets, {size} bytes, but has {len(body)}; "
            "it is cut off, or not an STL file"
        )
    return _read_binary(body, count)


def _read_binary(body: bytes, count: int) -> PointCloud:
    facets = np.frombuffer(body, _FACET, count, _START)
    with np.errstate(invalid="ignore"):  # some NaNs signal
        positions = facets["vertices"].reshape(-1, 3).astype(np.float64)
    trailing = body[_START + facets.nbytes :]
    content = _Binary(body[:_HEAD], facets, trailing, resolution(positions, np.dtype(np.float32)))
    return PointCloud(positions, {}, {"stl": StlLayout(len(positions), content)})


def _read_text(body: bytes) -> PointCloud:
    spans = array("q")
    place = 0
    is_open = True
    for found in _TEXT.finditer(body):
        word = found[1].split()[0].lower()
        between = place == 0 and word in (b"solid", b"endsolid")
        if not between and word != _FACET_WORDS[place]:
            line = body.count(b"\n", 0, found.start()) + 1
            wanted = _FACET_WORDS[place].decode()
            raise FileFormatError(f"line {line} is '{word.decode()}' where STL has '{wanted}'")
        is_open = word != b"endsolid"
        if not between:
            place = (place + 1) % len(_FACET_WORDS)
            if place:
                spans.extend(span_of_content(found, 2))
    if is_open:
        raise FileFormatError("STL file does not end with endsolid; it is cut off")
    rows = NumberLines(body, np.array(spans, dtype=np.int64).reshape(-1, 2))
    positions = rows.table()[:, :3].reshape(-1, 4, 3)[:, 1:].reshape(-1, 3)
    if rows.has_rest():
        raise FileFormatError("STL file has corners or normals of more than three numbers")
    return PointCloud(positions, {}, {"stl": StlLayout(len(positions), _Text(rows))})


def _content_of(cloud: PointCloud) -> _Binary | _Text | None:
    layout = cloud.metadata.get("stl")
    return layout.content if isinstance(layout, StlLayout) else None


def precision(cloud: PointCloud) -> float:
    """Return how far writing may move a coordinate: nothing, or what a binary file had."""
    content = _content_of(cloud)
    return content.resolution if isinstance(content, _Binary) else 0.0


def losses(cloud: PointCloud) -> tuple[str, ...]:
    """Return what STL cannot hold: all attributes."""
    return lost_attributes(cloud, ())


def write(cloud: PointCloud, path: Path) -> None:
    """
    Write the facets of the STL file the points came from, with their corners where they are now.

    Everything else stays as it was, but the normal of a facet that moved is computed anew: it says
    nothing but how the corners lie, and some programs draw by it. Normals of 0, by which a file
    leaves that to the reader, stay 0.
    """
    content = _content_of(cloud)
    if content is None:
        raise FileFormatError(
            "STL holds triangles, and this cloud has none; write .ply, .obj or .off instead"
        )
    corners = cloud.positions.reshape(-1, 3, 3)
    if isinstance(content, _Binary):
        path.write_bytes(_binary_bytes(corners, content))
    else:
        path.write_bytes(_text_bytes(corners, content))


def _binary_bytes(corners: npt.NDArray[np.float64], content: _Binary) -> bytes:
    single = np.dtype("<f4")
    for values in corners.reshape(-1, 3).T:
        if stored_type(values, single, content.resolution) != single:
            raise FileFormatError(
                "binary STL has float32 coordinates, too coarse for where these points are now; "
                "write .ply, .obj or .off instead"
            )
    facets = content.facets.copy()
    with np.errstate(invalid="ignore"):
        new = corners.astype(single)
    old = facets["vertices"]
    moved = np.any((new != old) & ~(np.isnan(new) & np.isnan(old)), axis=(1, 2))
    facets["vertices"][moved] = new[moved]
    facets["normal"] = _new_normals(facets["normal"], corners, moved)
    count = len(facets).to_bytes(_START - _HEAD, "little")
    return content.head + count + facets.tobytes() + content.trailing


def _text_bytes(corners: npt.NDArray[np.float64], content: _Text) -> bytes:
    rows = content.rows.table().reshape(-1, 4, 3)
    old = rows[:, 1:]
    moved = np.any((corners != old) & ~(np.isnan(corners) & np.isnan(old)), axis=(1, 2))
    normals = _new_normals(rows[:, 0], corners, moved)
    table = np.concatenate([normals[:, np.newaxis], corners], axis=1)
    return content.rows.with_columns(list(table.reshape(-1, 3).T), keep_rest=False)


def _new_normals(
    normals: npt.NDArray[Any], corners: npt.NDArray[np.float64], moved: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    """Return `normals` (F, 3) with those of the `moved` (F,) facets `corners` (F, 3, 3) anew."""
    fresh = moved & np.any(normals != 0, axis=1)
    a, b, c = corners[fresh].transpose(1, 0, 2)
    with np.errstate(all="ignore"):
        cross = np.cross(b - a, c - a)
        units = cross / np.linalg.norm(cross, axis=1, keepdims=True)
    # A triangle without an area has no normal.
    units[~np.isfinite(units).all(axis=1)] = 0.0
    result = normals.copy()
    result[fresh] = units
    return result


FORMAT = Format("STL", (".stl",), read, write, precision, losses)

"""Room `cloud`: reading E57 files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pointmend.cloud.e57_fields import Array, Field
from pointmend.cloud.e57_file import CheckedE57
from pointmend.cloud.e57_layout import SCAN, E57Layout, attribute_names
from pointmend.cloud.e57_scan import Points, Scan, fields_of, pose_of, resolution_of
from pointmend.cloud.e57_tree import Node, library
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

ROWS_PER_CHUNK = 1 << 16
# A believable file takes some 20 times its size as arrays. One whose numbers are all constant takes
# no bytes at all, so that its counts can say anything.
_MOST_TIMES_LARGER = 200
_ALWAYS_ALLOWED = 4 << 20


@contextmanager
def library_errors(lib: Any, doing: str) -> Iterator[None]:
    """Turn whatever the library raises into one line."""
    try:
        yield
    except MemoryError as error:
        raise FileFormatError(f"E57 file {doing}: it does not fit into memory") from error
    except (
        lib.E57Exception,
        RuntimeError,
        ValueError,
        TypeError,
        LookupError,
        OverflowError,
    ) as error:
        reason = str(error).strip().split("\n")[0]
        raise FileFormatError(f"E57 file {doing}: {reason}") from error


def read(path: Path) -> PointCloud:
    """
    Read all scans of an E57 file into one cloud in the file's frame.

    Each scan's pose is applied. With more than one scan, the attribute "scan" tells which one a
    point belongs to. All numbers stored per point are attributes, in the smallest type that has
    their limits; an attribute that a scan does not have is 0 there, or NaN. Points that the file
    marks as having no position (invalid state 1: only a direction, 2: nothing) have NaN
    coordinates; what was stored there is written again.
    """
    lib = library()
    with path.open("rb") as file:
        checked = CheckedE57(file)
        scans, counts, lost = _scans(checked)
    _check_blobs(checked)
    names = attribute_names(scans)
    with library_errors(lib, "cannot be read"), np.errstate(over="ignore", invalid="ignore"):
        attributes = _empty_attributes(checked, scans, counts, names)
        opened = lib.ImageFile(str(path), "r")
        try:
            unwanted = _not_carried(checked.root)
            root = _with_blobs(lib, opened, checked.root.without("data3D", *unwanted), "")
            filler = _Filler(sum(counts), attributes, names)
            for number, (scan, count) in enumerate(zip(scans, counts)):
                node = opened.root()["data3D"][number]["points"] if count else None
                for chunk in _records(lib, opened, node, scan.fields, count):
                    filler.add(scan, chunk)
                said = _with_blobs(lib, opened, scan.node, f"/data3D/{number}")
                scans[number] = filler.finished(replace(scan, node=said), count)
        finally:
            opened.close()
    if len(scans) > 1:
        kind = np.uint16 if len(scans) <= 1 << 16 else np.uint32
        attributes[SCAN] = np.repeat(np.arange(len(scans), dtype=kind), counts)
    layout = E57Layout(
        root, checked.extensions, tuple(scans), sum(counts), filler.stored, tuple(lost)
    )
    return PointCloud(filler.positions, attributes, {"e57": layout})


def _scans(checked: CheckedE57) -> tuple[list[Scan], list[int], list[str]]:
    """Return the scans, how many points each has, and what of them is not carried along."""
    data = checked.root.get("data3D")
    if data is None or not data.children:
        raise FileFormatError("E57 file holds no scans")
    scans: list[Scan] = []
    counts: list[int] = []
    lost: list[str] = []
    for number, (_, node) in enumerate(data.children):
        called = f"scan {number}"
        points = node.get("points")
        prototype = None if points is None else points.get("prototype")
        if points is None or points.kind != "CompressedVector" or prototype is None:
            raise FileFormatError(f"E57 {called} has no points")
        fields, bits, unread = fields_of(prototype, called)
        lost += [f"field '{name}'" for name in unread]
        counts.append(checked.check_points(points, bits, called))
        unwanted = _not_carried(node)
        lost += [f"E57 {name}" for name in unwanted if name != "points"]
        scans.append(Scan(node.without(*unwanted), fields, pose_of(node)))
    lost += [f"E57 {name}" for name in _not_carried(checked.root) if name != "data3D"]
    return scans, counts, list(dict.fromkeys(lost))


def _not_carried(node: Node) -> list[str]:
    """
    Return which children of `node` are not carried along.

    Tables beside the points (lines of a grid, usually) name points by number, which no longer fits
    when points are selected. Lists of blobs are what pye57 cannot write.
    """
    return [
        name
        for name, child in node.children
        if any(
            found.kind == "CompressedVector"
            or (found.kind == "Vector" and any(n.kind == "Blob" for _, n in found.children))
            for found in child.walk()
        )
    ]


def _empty_attributes(
    checked: CheckedE57, scans: list[Scan], counts: list[int], names: dict[str, str]
) -> dict[str, Array]:
    """Return room for the attributes of all points, in the order in which fields come."""
    types: dict[str, list[np.dtype[Any]]] = {}
    for scan in scans:
        for name, field in scan.fields.items():
            if name not in scan.coordinates:
                types.setdefault(names[name], []).append(field.dtype)
    chosen = {name: np.result_type(*found) for name, found in types.items()}
    total = sum(counts)
    size = total * (6 * 8 + sum(dtype.itemsize for dtype in chosen.values()))
    if size > max(_MOST_TIMES_LARGER * checked.size, _ALWAYS_ALLOWED):
        raise FileFormatError(
            f"E57 file of {checked.size} bytes declares {total} points, which would take {size} "
            f"bytes in memory, more than {_MOST_TIMES_LARGER} times as many; its counts are wrong"
        )
    return {
        name: np.full(total, np.nan if dtype.kind == "f" else 0, dtype=dtype)
        for name, dtype in chosen.items()
    }


def _check_blobs(checked: CheckedE57) -> None:
    lengths = [n.integer("length", 0) for n in checked.root.walk() if n.kind == "Blob"]
    if min(lengths, default=0) < 0 or sum(lengths) > checked.size:
        raise FileFormatError("E57 file declares pictures larger than itself")


def _with_blobs(lib: Any, opened: Any, node: Node, path: str) -> Node:
    """Return the tree below `node`, which is at `path`, with the content of its blobs."""
    if node.kind == "Blob":
        is_empty = node.integer("length", 0) == 0
        content = b"" if is_empty else lib.BlobNode(opened.root().get(path)).read_buffer()
        return replace(node, blob=bytes(content))
    return replace(
        node,
        children=tuple(
            (name, _with_blobs(lib, opened, child, f"{path}/{step}"))
            for step, name, child in node.steps()
        ),
    )


def _records(
    lib: Any, opened: Any, points: Any, fields: dict[str, Field], count: int
) -> Iterator[dict[str, Array]]:
    """Yield the decoded fields of a scan, some rows at a time, (rows,) each."""
    if not count:
        return
    rows = min(count, ROWS_PER_CHUNK)
    raw = {name: np.empty(rows, dtype=field.raw_type) for name, field in fields.items()}
    buffers = lib.VectorSourceDestBuffer()
    for name, values in raw.items():
        buffers.append(lib.SourceDestBuffer(opened, name, values, rows, False, False))
    reader = points.reader(buffers)
    left = count
    while left:
        found = reader.read()
        if not 0 < found <= left:
            raise FileFormatError(f"E57 file has {count - left} points where {count} are declared")
        left -= found
        yield {name: fields[name].decode(values[:found]) for name, values in raw.items()}
    reader.close()


class _Filler:
    """
    Puts the points of one scan after the other into the arrays of the cloud.

    Parameters
    ----------
    total : int
        N, the points of all scans.
    attributes : dict of (N,) arrays
    names : dict of str
        The attribute of each field.
    """

    def __init__(self, total: int, attributes: dict[str, Array], names: dict[str, str]) -> None:
        self.positions: Points = np.empty((total, 3))
        self.stored: Points | None = None
        self._attributes = attributes
        self._names = names
        self._done = 0

    def add(self, scan: Scan, chunk: dict[str, Array]) -> None:
        """Add some points of `scan`, given as (rows,) per field."""
        stored = np.stack([chunk[name] for name in scan.coordinates], axis=1).astype(np.float64)
        states = chunk.get(scan.state)
        rows = slice(self._done, self._done + len(stored))
        self.positions[rows] = scan.to_global(stored, states)
        if self.stored is None and scan.must_keep(stored, states):
            self.stored = self.positions.copy()
        if self.stored is not None:
            self.stored[rows] = stored
        for name, values in chunk.items():
            if name not in scan.coordinates:
                self._attributes[self._names[name]][rows] = values
        self._done = rows.stop

    def finished(self, scan: Scan, count: int) -> Scan:
        """Return `scan` with the resolution of the `count` points that were added last."""
        rows = slice(self._done - count, self._done)
        stored = self.positions if self.stored is None else self.stored
        return replace(scan, resolution=resolution_of(scan, stored[rows]))

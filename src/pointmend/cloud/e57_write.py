"""Room `cloud`: writing E57 files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.e57_fields import Array, Field, IntegerField, field_for
from pointmend.cloud.e57_layout import SCAN, E57Layout, fields_of_cloud, guid, layout_of
from pointmend.cloud.e57_read import ROWS_PER_CHUNK, library_errors
from pointmend.cloud.e57_scan import SPHERICAL, Mask, Scan, to_cartesian, to_spherical
from pointmend.cloud.e57_tree import (
    Node,
    TreeWriter,
    integer_node,
    library,
    real_node,
    structure,
    text_node,
)
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

_STANDARD = "http://www.astm.org/COMMIT/E57/2010-e57-v1.0"
_NORMALS = "http://www.libe57.org/E57_NOR_surface_normals.txt"
_LIMITS = {
    "intensityLimits": ("intensity",),
    "colorLimits": ("colorRed", "colorGreen", "colorBlue"),
}
_NO_DIRECTION = 2  # the invalid state of a point of which nothing is known

Columns = dict[str, tuple[Field, Array]]


def write(cloud: PointCloud, path: Path) -> None:
    """
    Write an E57 file.

    A cloud from an E57 file gets that file's scans again, each in its own frame and number types,
    with all that was said about them. Any other cloud becomes one scan of double precision.

    Positions win over invalid states: a point with a finite position is written as valid, one
    without as invalid.
    """
    lib = library()
    layout = layout_of(cloud)
    fields = fields_of_cloud(cloud, layout)
    extensions = {"": _STANDARD, **layout.extensions}
    if any(field.startswith("nor:") for field in fields):
        extensions.setdefault("nor", _NORMALS)
    path.open("ab").close()  # what the system has against the place, it says better than libE57
    with library_errors(lib, "cannot be written"), np.errstate(over="ignore", invalid="ignore"):
        file = lib.ImageFile(str(path), "w")
        tree = TreeWriter(lib, file)
        try:
            for prefix, uri in extensions.items():
                file.extensionsAdd(prefix, uri)
            for name, node in _root_of(lib, cloud, layout).children:
                file.root().set(name, tree.build(node))
            scans = lib.VectorNode(file, True)
            file.root().set("data3D", scans)
            for scan, chosen in zip(layout.scans, _rows_of_scans(cloud, layout)):
                said, columns = _content(cloud, layout, scan, chosen, fields)
                scan_node = tree.build(said)
                scans.append(scan_node)
                _write_points(lib, file, tree, scan_node, columns)
            tree.write_blobs()
            file.close()
        except BaseException:
            file.cancel()
            raise


def _root_of(lib: Any, cloud: PointCloud, layout: E57Layout) -> Node:
    """Return what the file says about itself."""
    return (
        layout.root.replaced("formatName", text_node("ASTM E57 3D Imaging Data File"))
        .replaced("guid", guid(cloud, "file"))
        .replaced("versionMajor", integer_node(1))
        .replaced("versionMinor", integer_node(0))
        .replaced("e57LibraryVersion", text_node(lib.E57_LIBRARY_ID))
    )


def _rows_of_scans(cloud: PointCloud, layout: E57Layout) -> Iterator[npt.NDArray[np.intp]]:
    """Yield which points belong to each scan."""
    if len(layout.scans) == 1:
        yield np.arange(len(cloud), dtype=np.intp)
        return
    numbers = cloud.attributes[SCAN]
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise FileFormatError(f"attribute 'scan' must be whole numbers, but is {numbers.dtype}")
    wrong = (numbers < 0) | (numbers >= len(layout.scans))
    if wrong.any():
        raise FileFormatError(
            f"attribute 'scan' has {numbers[wrong][0]}, but the file had {len(layout.scans)} scans"
        )
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(len(layout.scans)), side="right")
    yield from np.split(order, ends[:-1])


def _content(
    cloud: PointCloud,
    layout: E57Layout,
    scan: Scan,
    chosen: npt.NDArray[np.intp],
    fields: dict[str, str],
) -> tuple[Node, Columns]:
    """Return what to say about a scan, and its columns (M,) for the points `chosen` (M,)."""
    positions = cloud.positions[chosen]
    before = None if layout.stored is None else layout.stored[chosen]
    values = {field: cloud.attributes[name][chosen] for field, name in fields.items()}
    stored, same = scan.to_stored(positions, before, values.get(scan.state))
    if any(isinstance(scan.fields[name], IntegerField) for name in scan.coordinates):
        # Whole numbers have no NaN; the invalid state says it for them.
        stored = np.where(np.isnan(stored).all(axis=1, keepdims=True), 0.0, stored)
    local = to_cartesian(stored) if scan.is_spherical else stored
    if not scan.is_spherical and all(name in values for name in SPHERICAL):
        old = np.stack([values[name] for name in SPHERICAL], axis=1).astype(np.float64)
        if not same.all():
            new = np.where(same[:, np.newaxis], old, to_spherical(local, old))
            values |= dict(zip(SPHERICAL, new.T))
    placed = np.asarray(np.isfinite(positions).all(axis=1))
    hidden = ~placed & np.isfinite(stored).all(axis=1)
    if scan.state in values or scan.state in scan.fields or hidden.any():
        values[scan.state] = _states(values.get(scan.state), placed, same)
    columns = scan.encode(stored, same)
    columns |= _columns(layout, scan, values)
    first = [name for name in scan.fields if name in columns]
    columns = {name: columns[name] for name in (*first, *columns)}
    said = scan.node_with_bounds(local[placed], moved=not same.all())
    return _with_limits(said, scan, columns), columns


def _states(states: Array | None, placed: Mask, same: Mask) -> Array:
    """Return the invalid states (M,): as they were where nothing moved, else as positions say."""
    were = np.zeros(len(placed), dtype=np.uint8) if states is None else states
    marked = np.where(placed, 0, np.where(were != 0, were, _NO_DIRECTION))
    kind = np.uint8 if were.dtype.kind == "b" else were.dtype
    return np.where(same, were, marked).astype(kind)


def _columns(layout: E57Layout, scan: Scan, values: dict[str, Array]) -> Columns:
    """Return the fields of a scan and what to write in them, (M,) each."""
    columns: Columns = {}
    for name, column in values.items():
        if name in scan.coordinates:
            continue  # an attribute only where another scan has both kinds of coordinates
        template = scan.fields.get(name)
        if template is None:
            others = (other.fields[name] for other in layout.scans if name in other.fields)
            template = next(others, None)
            if template is not None and not np.any(column[~np.isnan(column)]):
                continue  # what reading put where this scan has nothing
        plain = column.astype(np.uint8) if column.dtype.kind == "b" else column
        kinds = [kind for kind in (template, field_for(plain)) if kind is not None]
        found = (kind.exactly(plain) for kind in kinds)
        columns[name] = next(pair for pair in found if pair is not None)
    return columns


def _with_limits(said: Node, scan: Scan, columns: Columns) -> Node:
    """Add between which numbers new colours and intensities lie: readers need it to show them."""
    for limits, names in _LIMITS.items():
        if said.get(limits) is None and all(n in columns and n not in scan.fields for n in names):
            children: dict[str, Node] = {}
            for name in names:
                low, high = _range(*columns[name])
                children |= {f"{name}Minimum": low, f"{name}Maximum": high}
            said = said.replaced(limits, structure(**children))
    return said


def _range(field: Field, raw: Array) -> tuple[Node, Node]:
    """Return the limits of bytes and shorts (255, 65535); other numbers lie around 0 as they do."""
    if isinstance(field, IntegerField):
        if field.bits <= 16:
            return integer_node(field.minimum), integer_node(field.maximum)
        return integer_node(raw.min(initial=0)), integer_node(raw.max(initial=0))
    some = raw[np.isfinite(raw)]
    return real_node(some.min(initial=0.0)), real_node(some.max(initial=0.0))


def _write_points(lib: Any, file: Any, tree: TreeWriter, scan_node: Any, columns: Columns) -> None:
    """Add the points to a scan that hangs in the tree."""
    prototype = structure(**{name: field.node() for name, (field, _) in columns.items()})
    points = lib.CompressedVectorNode(file, tree.build(prototype), lib.VectorNode(file, True))
    scan_node.set("points", points)
    count = len(next(iter(columns.values()))[1])
    rows = max(1, min(count, ROWS_PER_CHUNK))
    room = {name: np.empty(rows, dtype=field.raw_type) for name, (field, _) in columns.items()}
    buffers = lib.VectorSourceDestBuffer()
    for name, chunk in room.items():
        buffers.append(lib.SourceDestBuffer(file, name, chunk, rows, False, False))
    writer = points.writer(buffers)
    try:
        for start in range(0, count, rows):
            length = min(rows, count - start)
            for name, (_, raw) in columns.items():
                room[name][:length] = raw[start : start + length]
            writer.write(length)
    except BaseException:
        # Left open, it would write from `room` into the file when both are gone, and crash.
        with suppress(Exception):
            writer.close()
        raise
    writer.close()

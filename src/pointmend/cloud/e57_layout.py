"""Room `cloud`: what a cloud remembers of its E57 file, and which attribute goes to which field."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pointmend.cloud.e57_fields import Array, Field, FloatField, IntegerField
from pointmend.cloud.e57_scan import CARTESIAN, CARTESIAN_STATE, Points, Pose, Scan
from pointmend.cloud.e57_tree import Node, real_node, structure, text_node
from pointmend.cloud.point_cloud import PerPoint, PointCloud
from pointmend.cloud.precision import holds

SCAN = "scan"
_COLOURS = {"colorRed": "red", "colorGreen": "green", "colorBlue": "blue"}
_NORMALS = {"nor:normalX": "nx", "nor:normalY": "ny", "nor:normalZ": "nz"}
# Fields of the standard that a cloud from elsewhere may have under the same name.
_WHOLE = (
    "rowIndex",
    "columnIndex",
    "returnIndex",
    "returnCount",
    "isIntensityInvalid",
    "isColorInvalid",
    "isTimeStampInvalid",
    CARTESIAN_STATE,
)
_ANY_NUMBER = ("intensity", "timeStamp")


@dataclass(frozen=True, eq=False)
class E57Layout(PerPoint):
    """
    What an E57 file had beyond positions and attributes; kept as `metadata["e57"]`.

    Which scan a point belongs to is the attribute "scan", if there is more than one.

    Parameters
    ----------
    root : Node
        All the file says beside its scans: coordinate reference system, pictures, extensions.
    extensions : dict of str
        The name space of each prefix.
    scans : tuple of Scan
    count : int
        Number of points.
    stored : (N, 3) float64 or None
        The coordinates as they stood in the file (in the scan's own frame, or range and angles), so
        that points which have not moved can be written as they were. None where these are the
        positions themselves.
    lost : tuple of str
        What the file had that is not carried along.
    """

    root: Node
    extensions: dict[str, str]
    scans: tuple[Scan, ...]
    count: int
    stored: Points | None = None
    lost: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.count

    def take(self, index: npt.NDArray[np.intp]) -> E57Layout:
        """Return the layout for the points `index` (M,)."""
        stored = None if self.stored is None else self.stored[index]
        return replace(self, count=len(index), stored=stored)


def layout_of(cloud: PointCloud) -> E57Layout:
    """
    Return the layout of the E57 file the cloud came from, or one for clouds from elsewhere.

    The latter is also for clouds that no longer tell which of several scans a point belongs to.
    """
    layout = cloud.metadata.get("e57")
    if isinstance(layout, E57Layout) and (len(layout.scans) == 1 or SCAN in cloud.attributes):
        return layout
    pose = _shifted(cloud)
    node = structure(guid=guid(cloud, "scan"), name=text_node("pointmend"))
    if pose.translation is not None:
        place = {axis: real_node(value) for axis, value in zip("xyz", pose.translation)}
        still = {axis: real_node(value) for axis, value in zip("wxyz", (1.0, 0.0, 0.0, 0.0))}
        turned = structure(rotation=structure(**still), translation=structure(**place))
        node = node.replaced("pose", turned)
    fields: dict[str, Field] = dict.fromkeys(CARTESIAN, FloatField())
    if not np.isfinite(cloud.positions).all():
        fields[CARTESIAN_STATE] = IntegerField(0, 2)
    root = structure(images2D=Node("Vector", attributes={"allowHeterogeneousChildren": "1"}))
    return E57Layout(root, {}, (Scan(node, fields, pose),), len(cloud))


def _shifted(cloud: PointCloud) -> Pose:
    """
    Return a pose at the middle of the cloud, rounded to whole units.

    Other programs often keep coordinates in single precision, relative to the pose. An axis is not
    shifted where that would round one of its coordinates.
    """
    low, high = cloud.bounds()
    with np.errstate(over="ignore", invalid="ignore"):
        shift = np.rint(np.nan_to_num(low / 2 + high / 2))
        back = cloud.positions - shift + shift
    exact = (back == cloud.positions) | ~np.isfinite(cloud.positions)
    shift = np.where(exact.all(axis=0), shift, 0.0)
    return Pose(translation=shift) if shift.any() else Pose()


def guid(cloud: PointCloud, what: str) -> Node:
    """Return an identifier that is the same whenever the same points are written."""
    digest = hashlib.blake2b(what.encode(), digest_size=16)
    digest.update(cloud.positions.data)
    return text_node(f"{{{uuid.UUID(bytes=digest.digest(), version=4)}}}".upper())


def attribute_names(scans: Iterable[Scan]) -> dict[str, str]:
    """
    Return what the fields of all scans, and colours and normals, are called as attributes.

    Colours and normals get the names they have in other formats. Normals keep their own where a
    scan is turned: they are directions in the scan's frame, which "nx" would not tell.
    """
    found = tuple(scans)
    taken = dict.fromkeys(name for scan in found for name in scan.fields)
    turned = any(scan.pose.rotation is not None for scan in found)
    short = _COLOURS if turned else _COLOURS | _NORMALS
    return {name: name for name in taken} | {f: n for f, n in short.items() if n not in taken}


def fields_of_cloud(cloud: PointCloud, layout: E57Layout) -> dict[str, str]:
    """Return the fields to be written beside the coordinates, and the attribute each comes from."""
    names = attribute_names(layout.scans)
    there = [n for scan in layout.scans for n in scan.fields if n not in scan.coordinates]
    wanted = {field: names[field] for field in there}
    wanted |= {name: name for name in (*_WHOLE, *_ANY_NUMBER) if name not in there}
    for triple in (_COLOURS, _NORMALS):
        new = not any(field in there for field in triple)
        if new and all(names.get(field) in cloud.attributes for field in triple):
            wanted |= {field: names[field] for field in triple}
    field_of = {name: field for field, name in wanted.items()}
    return {
        field_of[name]: name
        for name, values in cloud.attributes.items()
        if name in field_of and _is_held(field_of[name], values)
    }


def _is_held(field: str, values: Array) -> bool:
    """Tell whether E57 has numbers for `values`."""
    if values.ndim != 1 or values.dtype.kind not in ("biu" if field in _WHOLE else "biuf"):
        return False
    if values.dtype.itemsize < 8 or values.dtype.kind == "i":
        return True
    return holds(np.dtype(np.float64 if values.dtype.kind == "f" else np.int64), values)

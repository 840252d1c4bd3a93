"""Room `cloud`: what a cloud loses when it is written in another format than it came in."""

from __future__ import annotations

from collections.abc import Callable

from pointmend.cloud.e57_layout import E57Layout
from pointmend.cloud.format import Format
from pointmend.cloud.las_crs import crs
from pointmend.cloud.pcd import PcdLayout
from pointmend.cloud.ply import PlyLayout
from pointmend.cloud.point_cloud import PointCloud

_NO_VIEWPOINT = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def all_losses(cloud: PointCloud, chosen: Format) -> tuple[str, ...]:
    """
    Name what a format cannot hold of a cloud, a few words each.

    That is what the format itself says about attributes, and what only the format that the cloud
    came in has a place for: faces, coordinate systems, poses.
    """
    came_in = [key for key in cloud.metadata if key != chosen.name.lower()]
    others = [said for key in came_in for said in _ONLY_IN.get(key, _nothing)(cloud)]
    return (*chosen.losses(cloud), *others)


def _nothing(cloud: PointCloud) -> list[str]:
    return []


def _only_in_ply(cloud: PointCloud) -> list[str]:
    layout = cloud.metadata["ply"]
    assert isinstance(layout, PlyLayout)
    others = [e for e in layout.header.elements if e.name != "vertex" and e.count]
    return [f"{e.count} rows of '{e.name}'" for e in others] + [
        f"list '{name}' of the points" for name in layout.lists
    ]


def _only_in_las(cloud: PointCloud) -> list[str]:
    system = crs(cloud)
    return [f"coordinate system {system}"] if system else []


def _only_in_e57(cloud: PointCloud) -> list[str]:
    layout = cloud.metadata["e57"]
    assert isinstance(layout, E57Layout)
    posed = [scan for scan in layout.scans if not scan.pose.is_identity]
    whose = "the scan" if len(posed) == 1 else f"{len(posed)} scans"
    return [f"pose of {whose} (it is applied to the points)"] if posed else []


def _only_in_pcd(cloud: PointCloud) -> list[str]:
    layout = cloud.metadata["pcd"]
    assert isinstance(layout, PcdLayout)
    header = layout.header
    lost = [f"rows and columns ({header.width} x {header.height})"] if header.height > 1 else []
    viewpoint = [float(word) for word in (header.viewpoint or "").split()]
    return lost + (["viewpoint"] if viewpoint not in ([], _NO_VIEWPOINT) else [])


def _faces(cloud: PointCloud) -> list[str]:
    return ["faces of the mesh"]


_ONLY_IN: dict[str, Callable[[PointCloud], list[str]]] = {
    "ply": _only_in_ply,
    "las": _only_in_las,
    "e57": _only_in_e57,
    "pcd": _only_in_pcd,
    "obj": _faces,
    "off": _faces,
    "stl": _faces,
}

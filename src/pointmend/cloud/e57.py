"""Room `cloud`: E57 files, through pye57 (libE57Format)."""

from __future__ import annotations

import numpy as np

from pointmend.cloud.e57_layout import SCAN, E57Layout, fields_of_cloud, layout_of
from pointmend.cloud.e57_read import read
from pointmend.cloud.e57_write import write
from pointmend.cloud.format import Format
from pointmend.cloud.point_cloud import PointCloud

_ROUNDING_ULPS = 8

__all__ = ["FORMAT", "E57Layout", "losses", "precision", "read", "write"]


def precision(cloud: PointCloud) -> float:
    """
    Return how far writing may move a coordinate.

    That is the resolution the file had (its scale, or its single precision), and the rounding of
    double precision where coordinates are turned or shifted by a scan's pose. Points that have not
    moved are exact.
    """
    layout = layout_of(cloud)
    coarsest = max(scan.resolution for scan in layout.scans)
    if all(scan.pose.is_identity and not scan.is_spherical for scan in layout.scans):
        return coarsest
    bounds = np.abs(np.nan_to_num(np.concatenate(cloud.bounds())))
    largest = max(float(bounds.max()), *(scan.pose.distance for scan in layout.scans))
    return coarsest + float(_ROUNDING_ULPS * np.spacing(largest))


def losses(cloud: PointCloud) -> tuple[str, ...]:
    """Return what of the cloud an E57 file cannot hold."""
    layout = layout_of(cloud)
    lost = list(layout.lost)
    origin = cloud.metadata.get("e57")
    if isinstance(origin, E57Layout) and layout is not origin:
        lost.append(f"poses and descriptions of {len(origin.scans)} scans")
    held = set(fields_of_cloud(cloud, layout).values())
    if len(layout.scans) > 1:
        held.add(SCAN)
        if np.any(np.diff(cloud.attributes[SCAN].astype(np.int64).ravel()) < 0):
            lost.append("order of points of different scans")
    return (*lost, *(f"attribute '{name}'" for name in cloud.attributes if name not in held))


FORMAT = Format("E57", (".e57",), read, write, precision, losses)

"""Room `cloud`: one scan of an E57 file: its pose, its coordinates, what else it says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.e57_fields import Field, FloatField, IntegerField, field_of
from pointmend.cloud.e57_tree import Node, real_node, structure
from pointmend.errors import FileFormatError

Points = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
CARTESIAN = ("cartesianX", "cartesianY", "cartesianZ")
SPHERICAL = ("sphericalRange", "sphericalAzimuth", "sphericalElevation")
CARTESIAN_STATE, SPHERICAL_STATE = "cartesianInvalidState", "sphericalInvalidState"
# Trigonometry may round differently in the middle and at the end of an array.
_SPHERICAL_ULPS = 8


@dataclass(frozen=True, eq=False)
class Pose:
    """
    Where a scan stands: global = rotation @ local + translation.

    Parameters
    ----------
    rotation : (3, 3) float64 or None
        None if the axes are those of the file.
    translation : (3,) float64 or None
        None if the origin is that of the file.
    """

    rotation: Points | None = None
    translation: Points | None = None

    @property
    def is_identity(self) -> bool:
        """Whether local coordinates are global ones."""
        return self.rotation is None and self.translation is None

    @property
    def distance(self) -> float:
        """How far the scan stands from the origin along one axis, at most."""
        return 0.0 if self.translation is None else float(np.abs(self.translation).max())

    def to_global(self, local: Points) -> Points:
        """Return `local` (M, 3) in the file's frame."""
        turned = local if self.rotation is None else _turned(self.rotation, local)
        return turned if self.translation is None else turned + self.translation

    def to_local(self, points: Points) -> Points:
        """Return `points` (M, 3) of the file's frame in the scan's."""
        local = points if self.translation is None else points - self.translation
        return local if self.rotation is None else _turned(self.rotation.T, local)


def _turned(rotation: Points, points: Points) -> Points:
    """Return rotation @ point for `points` (M, 3), each row the same whatever rows are beside."""
    # A matrix product would not do: its rounding depends on the number of rows.
    x, y, z = points.T
    return np.stack([row[0] * x + row[1] * y + row[2] * z for row in rotation], axis=1)


def pose_of(scan: Node) -> Pose:
    """Return the pose a scan's node declares."""
    pose = scan.get("pose")
    if pose is None:
        return Pose()
    rotation = _numbers(pose.get("rotation"), "wxyz", (1.0, 0.0, 0.0, 0.0))
    translation = _numbers(pose.get("translation"), "xyz", (0.0, 0.0, 0.0))
    length = math.hypot(*rotation)
    if not (np.isfinite(length) and length > 0 and np.all(np.isfinite(translation))):
        raise FileFormatError(
            f"E57 has a scan whose pose is none: rotation {rotation}, translation {translation}"
        )
    w, x, y, z = rotation / length
    matrix = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return Pose(
        None if np.array_equal(matrix, np.eye(3)) else matrix,
        translation if translation.any() else None,
    )


def _numbers(node: Node | None, names: str, default: tuple[float, ...]) -> Points:
    found = [node.get(name) if node is not None else None for name in names]
    values = [d if n is None else n.real(None, 0.0) for n, d in zip(found, default)]
    return np.array(values)


def to_cartesian(spherical: Points) -> Points:
    """Return range, azimuth and elevation (M, 3) as x, y and z."""
    distance, azimuth, elevation = spherical.T
    flat = distance * np.cos(elevation)
    return np.stack(
        [flat * np.cos(azimuth), flat * np.sin(azimuth), distance * np.sin(elevation)], axis=1
    )


def to_spherical(local: Points, near: Points) -> Points:
    """Return x, y and z (M, 3) as range, azimuth and elevation; azimuths as in `near` (M, 3)."""
    x, y, z = local.T
    flat = np.hypot(x, y)
    azimuth = np.arctan2(y, x)
    # Some files count from 0 to 2 pi, some from -pi to pi.
    turns = np.rint((near[:, 1] - azimuth) / (2 * np.pi))
    azimuth = azimuth + 2 * np.pi * np.where(np.isfinite(turns), turns, 0.0)
    return np.stack([np.hypot(flat, z), azimuth, np.arctan2(z, flat)], axis=1)


@dataclass(frozen=True, eq=False)
class Scan:
    """
    One scan.

    Parameters
    ----------
    node : Node
        All it says about itself (guid, name, sensor, times, limits, pose), without the points.
    fields : dict of Field
        What is stored per point, by the E57 name, in the order of the file.
    pose : Pose
    resolution : float
        What the scan's coordinates could tell apart; 0 for double precision.
    """

    node: Node
    fields: dict[str, Field]
    pose: Pose
    resolution: float = 0.0

    @property
    def name(self) -> str:
        """What the scan is called, or ""."""
        named = self.node.get("name")
        return "" if named is None else named.text

    @property
    def is_spherical(self) -> bool:
        """Whether points are given by range and angles alone."""
        return not all(name in self.fields for name in CARTESIAN)

    @property
    def coordinates(self) -> tuple[str, str, str]:
        """The fields that hold the position."""
        return SPHERICAL if self.is_spherical else CARTESIAN

    @property
    def state(self) -> str:
        """The field that says which positions are none."""
        return SPHERICAL_STATE if self.is_spherical else CARTESIAN_STATE

    def must_keep(self, stored: Points, states: npt.NDArray[Any] | None) -> bool:
        """Tell whether `stored` (M, 3) cannot be had from global coordinates to the last bit."""
        if not self.pose.is_identity or SPHERICAL[0] in self.fields:
            return True
        return states is not None and bool(states.any() or not np.isfinite(stored).all())

    def to_global(self, stored: Points, states: npt.NDArray[Any] | None) -> Points:
        """
        Return stored coordinates (M, 3) in the file's frame.

        Parameters
        ----------
        stored : (M, 3) float64
        states : (M,) integers or None
            1 where only the direction is known, 2 where nothing is: such points become NaN, unless
            their own coordinates say so already by being NaN or inf.
        """
        local = to_cartesian(stored) if self.is_spherical else stored
        points = self.pose.to_global(local)
        if states is not None and states.any():
            hidden = (states != 0) & np.isfinite(stored).all(axis=1)
            points = np.where(hidden[:, np.newaxis], np.nan, points)
        return points

    def to_stored(
        self, points: Points, before: Points | None, states: npt.NDArray[Any] | None
    ) -> tuple[Points, Mask]:
        """
        Return `points` (M, 3) in the scan's own coordinates, and which of them have not moved.

        Parameters
        ----------
        points : (M, 3) float64
            In the file's frame.
        before : (M, 3) float64 or None
            The stored coordinates as they were read. What has not moved is taken from here.
        states : (M,) integers or None
            As they were read.
        """
        local = self.pose.to_local(points)
        if before is None:
            return local, np.zeros(len(points), dtype=np.bool_)
        was = self.to_global(before, states)
        slack = 0.0
        if self.is_spherical:
            largest = np.abs(was, where=np.isfinite(was), out=np.zeros_like(was)).max(initial=0.0)
            slack = float(_SPHERICAL_ULPS * np.spacing(max(largest, self.pose.distance)))
        with np.errstate(invalid="ignore"):
            near = (np.abs(was - points) <= slack) | (was == points)
        same = (near | (np.isnan(was) & np.isnan(points))).all(axis=1)
        moved = to_spherical(local, before) if self.is_spherical else local
        return np.where(same[:, np.newaxis], before, moved), same

    def encode(self, stored: Points, same: Mask) -> dict[str, tuple[Field, npt.NDArray[Any]]]:
        """
        Return the coordinates `stored` (M, 3) as fields and what to write in them.

        The fields are the scan's own if these hold what has moved (not `same`, (M,)) to within
        `resolution`, and double precision if not.
        """
        found = [self.fields[n].nearest(v) for n, v in zip(self.coordinates, stored.T)]
        pairs = [pair for pair in found if pair is not None]
        if len(pairs) == 3:
            kept = np.stack([f.decode(raw) for f, raw in pairs], axis=1).astype(np.float64)
            wanted = stored
            if self.is_spherical:
                kept, wanted = to_cartesian(kept), to_cartesian(stored)
            with np.errstate(invalid="ignore"):
                close = (np.abs(kept - wanted) <= self.resolution) | (kept == wanted)
            if np.all(close.all(axis=1) | same | ~np.isfinite(stored).all(axis=1)):
                return dict(zip(self.coordinates, pairs))
        return {n: (FloatField(), v) for n, v in zip(self.coordinates, stored.T)}

    def node_with_bounds(self, local: Points, moved: bool) -> Node:
        """Return the scan's node with bounds of the valid points `local` (M, 3)."""
        node = self.node.without("sphericalBounds") if moved else self.node
        if not len(local):
            return node.without("cartesianBounds")
        low, high = local.min(axis=0), local.max(axis=0)
        bounds = {}
        for axis, least, most in zip("xyz", low, high):
            bounds[f"{axis}Minimum"], bounds[f"{axis}Maximum"] = real_node(least), real_node(most)
        return node.replaced("cartesianBounds", structure(**bounds))


def resolution_of(scan: Scan, stored: Points) -> float:
    """Return what the coordinates `stored` (M, 3) of a scan can tell apart."""
    steps = [scan.fields[n].step(v) for n, v in zip(scan.coordinates, stored.T)]
    if not scan.is_spherical:
        return max(steps)
    finite = np.abs(stored[:, 0], where=np.isfinite(stored[:, 0]), out=np.zeros(len(stored)))
    return steps[0] + float(finite.max(initial=0.0)) * (steps[1] + steps[2])


def fields_of(prototype: Node, scan: str) -> tuple[dict[str, Field], list[int], list[str]]:
    """
    Return what a scan stores per point.

    Returns
    -------
    fields : dict of Field
        What can be read: numbers that are not nested in structures.
    bits : list of int
        What one point takes of each byte stream, at least.
    lost : list of str
        The names of what cannot be read.
    """
    fields: dict[str, Field] = {}
    bits: list[int] = []
    lost: list[str] = []
    for name, node in prototype.children:
        leaves = [found for found in node.walk() if found.kind not in ("Structure", "Vector")]
        if any(leaf.kind in ("CompressedVector", "Blob") for leaf in leaves):
            raise FileFormatError(f"E57 {scan} has a {leaves[0].kind} per point")
        for leaf in leaves:
            field = field_of(leaf)
            bits.append(8 if field is None else field.bits)  # a text takes a byte even if empty
        field = field_of(node)
        # An attribute cannot have the name of a coordinate, or the one we give to scans.
        if field is None or name in ("x", "y", "z", "scan") or not name.isprintable():
            lost.append(name)
        else:
            fields[name] = field
    if not any(all(name in fields for name in names) for names in (CARTESIAN, SPHERICAL)):
        raise FileFormatError(f"E57 {scan} has neither x, y and z nor range and angles")
    for name in (CARTESIAN_STATE, SPHERICAL_STATE):
        found_state = fields.get(name)
        if found_state is not None and (
            not isinstance(found_state, IntegerField) or found_state.scale is not None
        ):
            raise FileFormatError(f"E57 {scan} has '{name}' that is no whole number")
    return fields, bits, lost

"""Room `cloud`: the .bin files of the KITTI data sets: rows of x, y, z, intensity, no more."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.format import Format
from pointmend.cloud.point_cloud import PointCloud
from pointmend.cloud.precision import holds, resolution
from pointmend.errors import FileFormatError

Array = npt.NDArray[Any]
_SINGLE = np.dtype("<f4")
_ROW = 4 * _SINGLE.itemsize
# What the fourth column is called in clouds from elsewhere, the likeliest first.
_INTENSITY = ("intensity", "reflectance", "i")
# No coordinate of a scan is near this, most other files read as float32 are beyond it somewhere.
_FARTHEST = 1e9
# KITTI counts in metres, and no scanner resolves one millimetre.
_FINE_ENOUGH = 1e-3
# A cloud around its origin has steps below this part of its extent, in any unit.
_FINE_PART = 2.5e-7


@dataclass(frozen=True)
class KittiLayout:
    """What the coordinates of a .bin file could tell apart; kept as `metadata["kitti"]`."""

    resolution: float


def read(path: Path) -> PointCloud:
    """
    Read little-endian float32 rows x, y, z, intensity.

    The file has no header, so anything can carry its suffix: a size that is not a multiple of 16
    bytes, coordinates beyond 1e9 or mostly NaN are refused.
    """
    size = path.stat().st_size
    if size == 0:
        raise FileFormatError("holds no points")
    if size % _ROW:
        five = " (rows of five numbers, as nuScenes has them, cannot be read)"
        raise FileFormatError(
            f"does not look like KITTI: {size} bytes are not rows of {_ROW} bytes"
            + (five if size % 20 == 0 else "")
        )
    rows = np.fromfile(path, dtype=_SINGLE).reshape(-1, 4)
    with np.errstate(invalid="ignore"):  # some NaNs signal
        positions = rows[:, :3].astype(np.float64)
    absurd = _absurd(positions)
    if absurd:
        raise FileFormatError(f"does not look like KITTI: {absurd}")
    intensity = np.ascontiguousarray(rows[:, 3]).astype(np.float32)
    layout = KittiLayout(resolution(positions, _SINGLE))
    return PointCloud(positions, {"intensity": intensity}, {"kitti": layout})


def _absurd(positions: npt.NDArray[np.float64]) -> str | None:
    """Say why `positions` (N, 3) cannot be those of a scan, or None."""
    whole = np.isfinite(positions).all(axis=1)
    if np.count_nonzero(whole) * 2 < len(positions):
        return (
            f"{len(positions) - np.count_nonzero(whole)} of {len(positions)} points are not finite"
        )
    farthest = np.abs(positions[whole]).max(initial=0.0)
    return f"a coordinate is {farthest:.3g}" if farthest > _FARTHEST else None


def _step(positions: npt.NDArray[np.float64]) -> float:
    """Return how far float32 moves `positions` (N, 3) at most."""
    return 0.0 if holds(_SINGLE, positions) else resolution(positions, _SINGLE)


def precision(cloud: PointCloud) -> float:
    """Return how far writing may move a coordinate: nothing, or a step of float32."""
    return _step(cloud.positions)


def _intensity_name(cloud: PointCloud) -> str | None:
    """Return the attribute that becomes the fourth column: the first that has one number each."""
    for name in _INTENSITY:
        values = cloud.attributes.get(name)
        if values is not None and values.dtype.kind in "biuf" and values.size == len(cloud):
            return name
    return None


def losses(cloud: PointCloud) -> tuple[str, ...]:
    """Return what KITTI cannot hold: all attributes but one of intensities."""
    used = _intensity_name(cloud)
    return tuple(f"attribute '{name}'" for name in cloud.attributes if name != used)


def write(cloud: PointCloud, path: Path) -> None:
    """
    Write little-endian float32 rows x, y, z, intensity.

    The intensity is the attribute `intensity`, `reflectance` or `i`, else 0. Numbers with decimals
    are rounded to float32; coordinates may move by at most 1 mm, by a 4-millionth of the cloud's
    extent (for clouds in other units), or by what the .bin file they came from could tell apart.
    Anything coarser, such as UTM coordinates, is refused.
    """
    if len(cloud) == 0:
        raise FileFormatError("a KITTI file without points would be empty; choose another format")
    absurd = _absurd(cloud.positions)
    if absurd:
        raise FileFormatError(f"{absurd}; a KITTI file cannot hold that, choose another format")
    low, high = cloud.bounds()
    came = cloud.metadata.get("kitti")
    allowed = max(
        _FINE_ENOUGH,
        _FINE_PART * float(np.max(high - low)),
        came.resolution if isinstance(came, KittiLayout) else 0.0,
    )
    step = _step(cloud.positions)
    if step > allowed:
        raise FileFormatError(
            f"KITTI's float32 would round these coordinates to {step:.2g}; "
            "write another format (.ply, .las, .pcd), or move the cloud to its origin"
        )
    rows = np.zeros((len(cloud), 4), dtype=_SINGLE)
    with np.errstate(invalid="ignore"):
        rows[:, :3] = cloud.positions
    name = _intensity_name(cloud)
    if name is not None:
        rows[:, 3] = _single(name, cloud.attributes[name].reshape(-1))
    rows.tofile(path)


def _single(name: str, values: Array) -> Array:
    """Return intensities `values` (N,) as float32; decimals are rounded, nothing else changes."""
    with np.errstate(over="ignore", invalid="ignore"):
        single = values.astype(_SINGLE)
    exact = values.dtype.kind == "f" or values.dtype.kind == "b" or holds(_SINGLE, values)
    if not exact or np.any(np.isinf(single) != np.isinf(values)):
        raise FileFormatError(
            f"attribute '{name}' has numbers that float32 does not hold; rename or rescale it"
        )
    return single


FORMAT = Format("KITTI", (".bin",), read, write, precision, losses)

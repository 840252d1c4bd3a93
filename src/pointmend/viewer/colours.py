"""Viewer: from a number per point to a colour, and the light that shows the shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointmend.cloud.point_cloud import PointCloud
from pointmend.evaluation.figures import colour_map, estimate_normals

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_CHANNELS = (("red", "green", "blue"), ("r", "g", "b"))
_TRIPLES = ("rgb", "rgba", "color", "colour", "colors", "colours")

# A lamp above the viewer's shoulder, as the camera stands when a scan is opened.
_LAMP = np.array([0.25, -0.55, 0.80])
_DARKEST = 0.42
OUTLIER_COLOUR = np.array([0.84, 0.15, 0.16])
# A few far points must not push all others into one colour.
_FULL_SCALE_PERCENTILE = 98.0


def original_colours(cloud: PointCloud, rows: Int64) -> Float64 | None:
    """
    The colours that points came with.

    Parameters
    ----------
    rows : (M,) which points.

    Returns
    -------
    (M, 3) red, green and blue in 0 to 1, or None if the cloud has none.
    """
    by_name = {name.lower(): values for name, values in cloud.attributes.items()}
    for names in _CHANNELS:
        if all(name in by_name and by_name[name].ndim == 1 for name in names):
            return _as_shares(np.stack([by_name[name][rows] for name in names], axis=1))
    for name in _TRIPLES:
        values = by_name.get(name)
        if values is None:
            continue
        if values.ndim == 2 and values.shape[1] >= 3:
            return _as_shares(values[rows, :3])
        if values.ndim == 1 and values.dtype.itemsize == 4:  # PCD packs three bytes into a number
            packed = np.ascontiguousarray(values[rows]).view(np.uint32)
            return np.stack([packed >> shift & 255 for shift in (16, 8, 0)], axis=1) / 255.0
    return None


def _as_shares(channels: NDArray[Any]) -> Float64:
    """Colour channels (M, 3) of any type as shares of full brightness, 0 to 1."""
    brightest = np.nan_to_num(channels.astype(np.float64), posinf=0.0, neginf=0.0)
    top = float(brightest.max(initial=0.0))
    # LAS has 16 bits per channel, of which many writers use only eight.
    full = 1.0 if top <= 1.0 and channels.dtype.kind == "f" else 255.0 if top <= 255.0 else 65535.0
    return np.clip(brightest / full, 0.0, 1.0)


def full_scale(values: Float64) -> float:
    """The value of the last colour: nearly all values (M,) stay below it; never 0."""
    if len(values) == 0:
        return 1.0
    return float(np.percentile(values, _FULL_SCALE_PERCENTILE)) or float(values.max()) or 1.0


def value_colours(values: Float64, top: float) -> Float64:
    """The colours (M, 3) in 0 to 1 of values (M,), from 0 to `top`, as the reports have them."""
    return colour_map(values / top)


def light(points: Float64) -> Float64:
    """
    How bright each point is lit, so that a surface looks like one and noise like noise.

    Parameters
    ----------
    points : (M, 3) finite.

    Returns
    -------
    (M,) factors in 0 to 1; both sides of a surface are lit alike, since nobody knows its outside.
    """
    lamp = _LAMP / np.linalg.norm(_LAMP)
    facing = np.abs(estimate_normals(points, lamp) @ lamp)
    return np.asarray(_DARKEST + (1.0 - _DARKEST) * np.clip(facing, 0.0, 1.0))


def painted(colours: Float64, brightness: Float64) -> Bytes:
    """Colours (M, 3) in 0 to 1 under a light (M,), as bytes (M, 3)."""
    return np.rint(255.0 * np.clip(colours * brightness[:, None], 0.0, 1.0)).astype(np.uint8)

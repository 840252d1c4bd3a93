"""Geometry: frames, where the network wants a cloud to be and how a patch is turned upright."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .neighbours import typical_spacing

Float64 = NDArray[np.float64]

# Spacings of the training clouds in the unit sphere (10k to 50k points), and their middle, which
# every other cloud is brought to.
KNOWN_SPACING = (0.005, 0.036)
PREFERRED_SPACING = 0.014

# Points around the centre that decide which way is up.
UPRIGHT_POINTS = 200


def patch_rotation(patch: Float64, rng: np.random.Generator | None = None) -> Float64:
    """
    The rotation that turns a patch upright: its least principal axis becomes z.

    Parameters
    ----------
    patch : (N, 3) centred, nearest to the centre first.
    rng : when given, a random spin about z and a random side up, for training.

    Returns
    -------
    (3, 3) R, to be used as patch @ R.T.
    """
    inner = patch[:UPRIGHT_POINTS]
    _, axes = np.linalg.eigh(np.cov(inner.T) if len(inner) > 1 else np.eye(3))
    normal, tangent = axes[:, 0], axes[:, 2]
    mean = inner.mean(axis=0)
    up = -1.0 if normal @ mean < 0 else 1.0
    along = -1.0 if tangent @ mean < 0 else 1.0
    if rng is not None:
        up = float(rng.choice([-1.0, 1.0]))
    normal, tangent = up * normal, along * tangent
    rotation = np.stack([tangent, np.cross(normal, tangent), normal])
    if rng is not None:
        spin = rng.uniform(0.0, 2.0 * np.pi)
        c, s = np.cos(spin), np.sin(spin)
        rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ rotation
    return rotation


@dataclass(frozen=True)
class CloudFrame:
    """
    Where a cloud is moved to for the network: (x - centre) / scale.

    Attributes
    ----------
    centre : (3,) in input units.
    scale : input units per unit of the network's frame.
    spacing : typical distance between neighbouring points, in input units.
    by_spacing : whether spacing decided the scale, not the bounding sphere.
    """

    centre: Float64
    scale: float
    spacing: float
    by_spacing: bool

    def enter(self, points: Float64) -> Float64:
        """Input units to the network's frame: (N, 3) -> (N, 3)."""
        return (points - self.centre) / self.scale

    def leave(self, points: Float64) -> Float64:
        """The network's frame to input units: (N, 3) -> (N, 3)."""
        return points * self.scale + self.centre


def frame_cloud(points: Float64) -> CloudFrame:
    """
    Choose the frame: the unit sphere where its spacing is one the network knows, else spacing.

    Parameters
    ----------
    points : (N, 3) finite points, N >= 1, without repeated ones.
    """
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    radius = float(np.linalg.norm(points - centre, axis=1).max())
    spacing = typical_spacing(points - centre)
    if spacing <= 0.0:
        return CloudFrame(centre, radius or 1.0, spacing, by_spacing=False)
    low, high = KNOWN_SPACING
    if low <= spacing / radius <= high:
        return CloudFrame(centre, radius, spacing, by_spacing=False)
    return frame_by_spacing(centre, spacing)


def frame_by_spacing(centre: Float64, spacing: float) -> CloudFrame:
    """The frame in which a cloud around `centre` (3,) has the preferred spacing."""
    return CloudFrame(centre, spacing / PREFERRED_SPACING, spacing, by_spacing=True)

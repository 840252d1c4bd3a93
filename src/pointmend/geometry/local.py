"""Geometry: what the network is told about a cloud: positions, neighbours, planes and frames."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .neighbours import neighbour_table
from .planes import Planes, PlaneScales, fit_planes


@dataclass(frozen=True)
class LocalGeometry:
    """
    M points, in patches of `patch_points` that do not see each other.

    Attributes
    ----------
    positions : (M, 3) float32, each patch relative to its centre.
    neighbours : (M, K) int64 rows of positions, nearest first, itself first.
    patch_points : M / number of patches.
    planes : planes around every point, when asked for.
    frames : (M, 3, 3) a rotation into every point's own axes, when asked for.
    """

    positions: Tensor
    neighbours: Tensor
    patch_points: int
    planes: Planes | None = None
    frames: Tensor | None = None


@torch.no_grad()
def local_geometry(
    positions: Tensor,
    patch_points: int,
    k: int,
    *,
    planes: bool,
    frames: bool,
    scales: PlaneScales,
) -> LocalGeometry:
    """
    Look at a cloud: neighbours, and planes and frames when asked for. No gradient passes.

    Parameters
    ----------
    positions : (M, 3) float32 or float64, patches one after the other.
    patch_points : points of each patch.
    k : neighbours of every point.
    scales : what planes and frames are fitted to.
    """
    neighbours = neighbour_table(positions, patch_points, k)
    fitted, axes = None, None
    if planes or frames:
        fitted, axes = fit_planes(positions, neighbours, scales)
    return LocalGeometry(
        positions=positions.float(),
        neighbours=neighbours,
        patch_points=patch_points,
        planes=fitted if planes else None,
        frames=axes if frames else None,
    )

"""Room `scans`: what is written beside the moved points: displacements and outliers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import InputError

DISPLACEMENT = "displacement"
OUTLIER = "outlier"
NOISE_CLASS = 7
"""ASPRS class of noise points in LAS files ("low point (noise)")."""


@dataclass(frozen=True)
class Marks:
    """
    What the output says about its points.

    Attributes
    ----------
    displacement : add an attribute with how far each point moved.
    drop_outliers : leave flagged points out; otherwise they are marked.
    outliers : whether outliers were looked for at all.
    """

    displacement: bool = False
    drop_outliers: bool = False
    outliers: bool = False


def check_marks(cloud: PointCloud, marks: Marks, source: Path) -> None:
    """Refuse marks that would take the place of what the file has."""
    wanted = {DISPLACEMENT: marks.displacement, OUTLIER: marks.outliers and not _is_las(cloud)}
    for name, asked in wanted.items():
        if asked and name in cloud.attributes:
            raise InputError(f"{source} already has an attribute '{name}', which would be lost")


def marked(
    cloud: PointCloud,
    displacement: NDArray[np.float64],
    outlier: NDArray[np.bool_],
    marks: Marks,
) -> PointCloud:
    """
    The cloud of N points with its marks.

    Parameters
    ----------
    displacement, outlier : (N,).
    """
    if marks.displacement:
        cloud = cloud.with_attribute(DISPLACEMENT, displacement.astype(np.float32))
    if marks.drop_outliers:
        return cloud[~outlier] if outlier.any() else cloud
    if not marks.outliers:
        return cloud
    if _is_las(cloud):
        classes = cloud.attributes["classification"].copy()
        classes[outlier] = NOISE_CLASS
        return cloud.with_attribute("classification", classes)
    return cloud.with_attribute(OUTLIER, outlier)


def _is_las(cloud: PointCloud) -> bool:
    """Whether points have a class as LAS files do."""
    return "las" in cloud.metadata and "classification" in cloud.attributes

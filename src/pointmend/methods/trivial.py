"""Methods: the two ends of the scale, doing nothing and knowing the answer."""

from __future__ import annotations

from dataclasses import dataclass

from pointmend.errors import InputError
from pointmend.geometry.triangles import points_to_mesh

from .method import Float64, Task


@dataclass(frozen=True)
class Identity:
    """The noisy input, as it is."""

    name: str = "noisy input"
    keeps_order: bool = True

    def __call__(self, task: Task) -> Float64:
        """A copy of the points (N, 3)."""
        return task.points.copy()


@dataclass(frozen=True)
class Oracle:
    """Every point at the nearest point of the true surface: the floor of moving along normals."""

    name: str = "oracle projection"
    keeps_order: bool = True

    def __call__(self, task: Task) -> Float64:
        """Projections (N, 3) of the points."""
        if task.surface is None:
            raise InputError("the oracle needs the true surface, and this cloud comes without")
        if len(task.points) == 0:
            return task.points.copy()
        return points_to_mesh(task.points, task.surface).closest

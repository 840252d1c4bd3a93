"""Meshes of distances: closed, on the surface, and as large as it is."""

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.geometry.implicit import mesh_of

from .closed import volume_if_closed

Floats = NDArray[np.float64]


def sphere(x: Floats) -> Floats:
    return np.asarray(np.linalg.norm(x, axis=1) - 0.7)


def ring(x: Floats) -> Floats:
    around = np.linalg.norm(x[:, :2], axis=1) - 0.6
    return np.asarray(np.hypot(around, x[:, 2]) - 0.2)


@pytest.mark.parametrize(
    ("distance", "volume"),
    [(sphere, 4.0 / 3.0 * np.pi * 0.7**3), (ring, 2.0 * np.pi**2 * 0.6 * 0.2**2)],
)
def test_the_mesh_is_the_surface(distance: object, volume: float) -> None:
    assert callable(distance)
    mesh = mesh_of(distance, 64)
    off = np.abs(distance(mesh.vertices)) / (2.0 / 64)
    assert off.max() < 0.2
    assert off.mean() < 0.01
    # Faces of inscribed corners enclose a little less.
    assert volume_if_closed(mesh) == pytest.approx(volume, rel=0.01)


def test_every_block_that_the_surface_passes_is_found() -> None:
    """The same mesh as from all corners of the grid, where a thin wall passes between blocks."""

    def wall(x: Floats) -> Floats:
        return np.asarray(np.maximum(np.abs(x[:, 0] - 0.011) - 0.03, np.abs(x).max(axis=1) - 0.9))

    mesh = mesh_of(wall, 64)
    corners = 2.0 * np.indices((65, 65, 65)).reshape(3, -1).T / 64 - 1.0
    inside = np.count_nonzero(wall(corners) < 0.0)
    # Each corner inside stands for a cell's volume; the wall is two corners thick.
    assert volume_if_closed(mesh) == pytest.approx(0.06 * 1.8**2, rel=0.03)
    assert inside == 2 * 57**2

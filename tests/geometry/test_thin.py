"""Thin-walled and solid shapes: closed, outward, as thin as they say, and never the same."""

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.geometry.meshes import Mesh, face_normals, sample_surface, unit_sphere
from pointmend.geometry.thin import solid_shape, thin_shape
from pointmend.geometry.triangles import points_to_mesh

from .closed import volume_if_closed

Floats = NDArray[np.float64]
SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_shape_is_closed_and_fills_the_unit_sphere(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for mesh in (thin_shape(rng).mesh, solid_shape(rng)):
        centre, radius = unit_sphere(mesh.vertices)
        np.testing.assert_allclose(centre, 0.0, atol=1e-12)
        assert radius == pytest.approx(1.0)
        assert 0.0 < volume_if_closed(mesh) < 2.0


def depths_of(mesh: Mesh) -> Floats:
    """How deep (400,) below a side another one is nearer; infinite where it is too far."""
    points, face = sample_surface(mesh, 400, np.random.default_rng(0))
    inwards = -face_normals(mesh)[face]
    depths = np.linspace(0.01, 0.4, 40)
    nearest = [np.sqrt(points_to_mesh(points + d * inwards, mesh).squared) for d in depths]
    beyond_the_middle = np.array(nearest) < 0.9 * depths[:, None]
    found = depths[beyond_the_middle.argmax(axis=0)]
    return np.where(beyond_the_middle.any(axis=0), found, np.inf)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_other_side_of_a_wall_is_near(seed: int) -> None:
    walls = thin_shape(np.random.default_rng(seed))
    depths = depths_of(walls.mesh)
    assert np.isfinite(depths).mean() > 0.95
    assert np.median(depths) < 0.2
    # Another side is nearer than one's own from half of the wall on. Bent walls are thinner.
    assert 0.2 * walls.thinnest < np.quantile(depths, 0.1)
    assert 0.4 * walls.thinnest < np.median(depths)


@pytest.mark.parametrize("seed", SEEDS)
def test_behind_a_solid_side_there_is_nothing_near(seed: int) -> None:
    assert np.quantile(depths_of(solid_shape(np.random.default_rng(seed))), 0.4) > 0.1


def test_shapes_differ() -> None:
    first, again, other = (thin_shape(np.random.default_rng(seed)).mesh for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.vertices, again.vertices)
    assert first.vertices.shape != other.vertices.shape

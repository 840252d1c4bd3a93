"""Cast parts: closed, with walls as thick as they say, open, and never the same."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from pointmend.geometry.meshes import Mesh, sample_surface, unit_sphere, vertex_normals
from pointmend.geometry.shells import shell_shape
from pointmend.geometry.thin import Walls

from .closed import directed_edges

SEEDS = range(3)


@pytest.fixture(scope="module", params=SEEDS)
def walls(request: pytest.FixtureRequest) -> Walls:
    """A part."""
    return shell_shape(np.random.default_rng(request.param))


def test_every_part_is_closed_and_fills_the_unit_sphere(walls: Walls) -> None:
    centre, radius = unit_sphere(walls.mesh.vertices)
    np.testing.assert_allclose(centre, 0.0, atol=1e-12)
    assert radius == pytest.approx(1.0)
    # Walls may touch along an edge of the grid, which is then walked twice in either direction.
    forth = directed_edges(walls.mesh)
    back = forth[:, ::-1]
    np.testing.assert_array_equal(forth[np.lexsort(forth.T)], back[np.lexsort(back.T)])


def test_much_of_a_part_is_walls_as_thick_as_they_say(walls: Walls) -> None:
    depth = _depth(walls.mesh, walls.thinnest)
    # A wall's thickness below the surface is its other side; ribs, bosses and edges are thicker.
    assert np.percentile(depth, 25.0) < 0.15
    # Half as deep there is nothing.
    assert np.percentile(_depth(walls.mesh, 0.5 * walls.thinnest), 10.0) > 0.6


def _depth(mesh: Mesh, below: float) -> np.ndarray:
    """How far the surface is from where its vertices lead so far below it, as a share of that."""
    points, _ = sample_surface(mesh, 100_000, np.random.default_rng(0))
    inside = mesh.vertices - below * vertex_normals(mesh)
    return np.asarray(cKDTree(points).query(inside)[0] / below)


def test_parts_differ() -> None:
    first, again, other = (shell_shape(np.random.default_rng(seed)).mesh for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.vertices, again.vertices)
    assert first.vertices.shape != other.vertices.shape

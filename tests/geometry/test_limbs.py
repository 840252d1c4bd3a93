"""Bodies with limbs: closed, as thin as they say, and never the same."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from pointmend.geometry.limbs import limb_shape
from pointmend.geometry.meshes import sample_surface, unit_sphere, vertex_normals

from .closed import directed_edges

SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_shape_is_closed_and_fills_the_unit_sphere(seed: int) -> None:
    mesh = limb_shape(np.random.default_rng(seed)).mesh
    centre, radius = unit_sphere(mesh.vertices)
    np.testing.assert_allclose(centre, 0.0, atol=1e-12)
    assert radius == pytest.approx(1.0)
    # Limbs may touch along an edge of the grid, which is then walked twice in either direction.
    forth = directed_edges(mesh)
    back = forth[:, ::-1]
    np.testing.assert_array_equal(forth[np.lexsort(forth.T)], back[np.lexsort(back.T)])


@pytest.mark.parametrize("seed", SEEDS)
def test_limbs_are_as_thin_as_they_say(seed: int) -> None:
    walls = limb_shape(np.random.default_rng(seed))
    mesh = walls.mesh
    points, _ = sample_surface(mesh, 20_000, np.random.default_rng(0))
    # Half of the least diameter below the surface, the surface is nowhere nearer than that on the
    # thinnest limb; a tenth more, and it is nearer there.
    normals = -vertex_normals(mesh)
    tree = cKDTree(points)
    depth = tree.query(mesh.vertices + 0.5 * walls.thinnest * normals)[0] / (0.5 * walls.thinnest)
    assert np.percentile(depth, 20.0) > 0.8
    deeper = tree.query(mesh.vertices + 0.9 * walls.thinnest * normals)[0] / (0.9 * walls.thinnest)
    assert deeper.min() < 0.3


def test_shapes_differ() -> None:
    first, again, other = (limb_shape(np.random.default_rng(seed)).mesh for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.vertices, again.vertices)
    assert first.vertices.shape != other.vertices.shape

from __future__ import annotations

import numpy as np

from pointmend.geometry.meshes import Mesh
from pointmend.geometry.triangles import points_to_mesh
from pointmend.training.shapes import MeshSurface

CUBE = Mesh(
    np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]),
    np.array(
        [
            *([0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]),
            *([2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]),
        ]
    ),
)


def test_the_way_to_a_mesh_is_that_of_an_exact_search() -> None:
    rng = np.random.default_rng(0)
    surface = MeshSurface.of(CUBE, 60_000, rng)
    x = surface.points[:2000] + 0.05 * rng.standard_normal((2000, 3))
    way, normal = surface.way_from(x)
    exact = points_to_mesh(x, CUBE).closest - x
    # Where two sides are equally near the sample may decide for the other one.
    assert np.allclose(np.linalg.norm(way, axis=1), np.linalg.norm(exact, axis=1), atol=2e-3)
    assert np.mean(np.abs(way - exact).max(axis=1) < 1e-9) > 0.97
    assert np.allclose(np.abs(normal).max(axis=1), 1.0)


def test_off_an_edge_the_way_leads_onto_the_edge() -> None:
    surface = MeshSurface.of(CUBE, 60_000, np.random.default_rng(0))
    way, _ = surface.way_from(np.array([[1.03, 0.5, 1.02], [1.02, 1.01, 1.03]]))
    assert np.allclose(way, [[-0.03, 0.0, -0.02], [-0.02, -0.01, -0.03]], atol=1e-9)

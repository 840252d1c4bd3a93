"""Shapes from formulas: closed, outward, inside the unit sphere, and as sharp as they say."""

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.geometry.meshes import Mesh, face_areas, face_normals, unit_sphere
from pointmend.geometry.procedural import SHAPES, thin_plate

from .closed import directed_edges, volume_if_closed


def _sharpest(mesh: Mesh) -> NDArray[np.float64]:
    """Cosines of the angles between the normals of faces that share an edge."""
    edges = directed_edges(mesh)
    owner = np.tile(np.arange(len(mesh.faces)), 3)
    order = np.lexsort(np.sort(edges, axis=1).T)
    left, right = owner[order].reshape(-1, 2).T
    normal = face_normals(mesh)
    cosine: NDArray[np.float64] = np.einsum("ei,ei->e", normal[left], normal[right])
    return cosine


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_closed_and_oriented(name: str) -> None:
    mesh = SHAPES[name]()
    assert volume_if_closed(mesh) > 0.01
    assert len(np.unique(mesh.faces)) == len(mesh.vertices)
    assert len(np.unique(mesh.vertices.round(9), axis=0)) == len(mesh.vertices)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_fills_the_unit_sphere_with_sound_faces(name: str) -> None:
    mesh = SHAPES[name]()
    centre, radius = unit_sphere(mesh.vertices)
    np.testing.assert_allclose(centre, 0.0, atol=1e-12)
    assert radius == pytest.approx(1.0)
    assert 5000 <= len(mesh.faces) <= 20000
    assert face_areas(mesh).min() > 1e-5


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_deterministic(name: str) -> None:
    np.testing.assert_array_equal(SHAPES[name]().vertices, SHAPES[name]().vertices)


@pytest.mark.parametrize("name", ["box", "thin_plate", "gear", "demo_shape"])
def test_sharp_shapes_have_sharp_edges(name: str) -> None:
    assert _sharpest(SHAPES[name]()).min() < np.cos(np.radians(60.0))


@pytest.mark.parametrize("name", ["torus", "knot", "rounded_box", "bumpy_sphere"])
def test_smooth_shapes_have_none(name: str) -> None:
    assert _sharpest(SHAPES[name]()).min() > np.cos(np.radians(25.0))


def test_demo_shape_is_mostly_smooth() -> None:
    cosine = _sharpest(SHAPES["demo_shape"]())
    assert np.mean(cosine > np.cos(np.radians(25.0))) > 0.9


def test_thin_plate_is_thin() -> None:
    extent = np.ptp(thin_plate().vertices, axis=0)
    assert extent[0] / extent[2] == pytest.approx(50.0)

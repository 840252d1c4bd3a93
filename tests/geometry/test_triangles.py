"""Distances to triangles, against exact rational arithmetic and against trying every pair."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.errors import InputError
from pointmend.geometry import triangles
from pointmend.geometry.meshes import Mesh
from pointmend.geometry.procedural import box, torus
from pointmend.geometry.triangles import (
    EXACT,
    PairDistance,
    closest_on_triangles,
    faces_to_points,
    points_to_mesh,
    squared_to_triangles,
)

Floats = NDArray[np.float64]
Vector = list[Fraction]


def _minus(a: Vector, b: Vector) -> Vector:
    return [x - y for x, y in zip(a, b)]


def _times(a: Vector, b: Vector) -> Fraction:
    return sum((x * y for x, y in zip(a, b)), Fraction(0))


def _rational_segment(p: Vector, a: Vector, b: Vector) -> Fraction:
    edge = _minus(b, a)
    length = _times(edge, edge)
    along = min(max(_times(_minus(p, a), edge) / length, Fraction(0)), Fraction(1)) if length else 0
    rest = [x - along * e for x, e in zip(_minus(p, a), edge)]
    return _times(rest, rest)


def rational_squared(point: Floats, corners: Floats) -> float:
    """The squared distance from one point to one triangle without any rounding on the way."""
    p = [Fraction(float(x)) for x in point]
    a, b, c = ([Fraction(float(x)) for x in corner] for corner in corners)
    e, f, q = _minus(b, a), _minus(c, a), _minus(p, a)
    ee, ef, ff, eq, fq = _times(e, e), _times(e, f), _times(f, f), _times(e, q), _times(f, q)
    determinant = ee * ff - ef * ef
    if determinant > 0:
        v, w = (ff * eq - ef * fq) / determinant, (ee * fq - ef * eq) / determinant
        if v >= 0 and w >= 0 and v + w <= 1:
            rest = [x - v * y - w * z for x, y, z in zip(q, e, f)]
            return float(_times(rest, rest))
    return float(
        min(_rational_segment(p, a, b), _rational_segment(p, b, c), _rational_segment(p, c, a))
    )


def nasty_mesh(rng: np.random.Generator, each: int = 12) -> Mesh:
    """Ordinary, huge and tiny triangles, slivers, triangles that are segments, and points."""
    centre = rng.normal(size=(6 * each, 1, 3))
    shape = rng.normal(size=(6 * each, 3, 3))
    shape[each : 2 * each] *= 50.0
    shape[2 * each : 3 * each] *= 1e-4
    sliver = slice(3 * each, 4 * each)
    shape[sliver, 2] = 0.3 * shape[sliver, 0] + 0.7 * shape[sliver, 1]
    shape[sliver, 2] += 1e-7 * rng.normal(size=(each, 3))
    shape[4 * each : 5 * each, 2] = shape[4 * each : 5 * each, 1]
    shape[5 * each :, 1:] = shape[5 * each :, :1]
    corners = centre + shape
    return Mesh(corners.reshape(-1, 3), np.arange(len(corners) * 3).reshape(-1, 3))


def every_pair(points: Floats, mesh: Mesh, distance: PairDistance = EXACT) -> Floats:
    """``(N, F)`` squared distances."""
    n, f = len(points), len(mesh.faces)
    corners = np.tile(mesh.corners, (n, 1, 1))
    return distance.squared(points.repeat(f, axis=0), corners).reshape(n, f)


def test_pairs_agree_with_rational_arithmetic() -> None:
    rng = np.random.default_rng(0)
    corners = nasty_mesh(rng, each=40).corners
    # Some points near their triangle, where cancellation would show, some anywhere.
    near = corners.mean(axis=1) + 1e-3 * rng.normal(size=(len(corners), 3))
    for points in (near, 2.0 * rng.normal(size=near.shape)):
        expected = [rational_squared(p, c) for p, c in zip(points, corners)]
        got = squared_to_triangles(points, corners)
        np.testing.assert_allclose(np.sqrt(got), np.sqrt(expected), rtol=1e-9, atol=1e-12)


@given(
    st.lists(st.integers(-3, 3), min_size=12, max_size=12),
    st.sampled_from([1.0, 1e-6, 1e6]),
)
@settings(max_examples=50, deadline=None)
def test_pairs_on_a_lattice_where_ties_and_degenerate_triangles_abound(
    numbers: list[int], scale: float
) -> None:
    rows = scale * np.array(numbers, dtype=np.float64).reshape(4, 3)
    got = squared_to_triangles(rows[None, 0], rows[None, 1:])[0]
    rounding = (1e-13 * scale) ** 2
    assert got == pytest.approx(rational_squared(rows[0], rows[1:]), rel=1e-9, abs=rounding)


def test_closest_points_lie_on_their_triangles() -> None:
    rng = np.random.default_rng(1)
    corners = rng.normal(size=(500, 3, 3))
    points = rng.normal(size=(500, 3))
    closest = closest_on_triangles(points, corners)
    np.testing.assert_allclose(squared_to_triangles(closest, corners), 0.0, atol=1e-24)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [0.1, 1.0, 200.0])
def test_search_finds_what_trying_every_pair_finds_on_nasty_meshes(
    seed: int, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    mesh = nasty_mesh(rng)
    points = spread * rng.normal(size=(150, 3))
    pairs = every_pair(points, mesh)
    found = points_to_mesh(points, mesh)
    np.testing.assert_array_equal(found.squared, pairs.min(axis=1))
    np.testing.assert_array_equal(pairs[np.arange(150), found.face], found.squared)
    np.testing.assert_allclose(
        np.linalg.norm(points - found.closest, axis=1), np.sqrt(found.squared), rtol=1e-12
    )
    np.testing.assert_array_equal(faces_to_points(mesh, points), pairs.min(axis=0))


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.5])
def test_search_on_regular_meshes(noise: float) -> None:
    rng = np.random.default_rng(3)
    for mesh in (torus(24, 12), box(4)):
        where = mesh.corners[rng.integers(len(mesh.faces), size=300)]
        points = np.einsum("nc,nci->ni", rng.dirichlet(np.ones(3), 300), where)
        points += noise * rng.normal(size=points.shape)
        pairs = every_pair(points, mesh)
        np.testing.assert_array_equal(points_to_mesh(points, mesh).squared, pairs.min(axis=1))
        np.testing.assert_array_equal(faces_to_points(mesh, points), pairs.min(axis=0))


def test_search_in_small_chunks_and_with_a_fan_of_slivers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triangles, "PAIRS_AT_ONCE", 37)
    angle = np.linspace(0.0, 2.0 * np.pi, 200, endpoint=False)
    rim = np.stack((np.cos(angle), np.sin(angle), 0.0 * angle), axis=1)
    number = np.arange(200)
    faces = np.stack((np.full(200, 200), number, (number + 1) % 200), axis=1)
    mesh = Mesh(np.vstack((rim, [[0.0, 0.0, 0.0]])), faces)
    points = np.random.default_rng(4).normal(size=(100, 3)) * [0.6, 0.6, 0.05]
    pairs = every_pair(points, mesh)
    np.testing.assert_array_equal(points_to_mesh(points, mesh).squared, pairs.min(axis=1))
    np.testing.assert_array_equal(faces_to_points(mesh, points), pairs.min(axis=0))


@pytest.mark.parametrize("budget", [10, 10**6])
def test_spheres_cover_every_triangle(budget: int) -> None:
    rng = np.random.default_rng(6)
    corners = np.concatenate((rng.normal(size=(20, 3, 3)), nasty_mesh(rng, each=1).corners))
    spots = np.einsum("sc,fci->fsi", rng.dirichlet(0.5 * np.ones(3), 100), corners)
    # Points on the triangles themselves, and reach enough for none of the pieces to be dropped.
    pieces = triangles._cover(
        corners, 0.3, budget, np.full(len(corners), 1e9), cKDTree(spots.reshape(-1, 3))
    )
    if budget == 10:
        assert len(pieces.parent) < 150
    else:
        assert pieces.radius.max() <= 0.3
        assert len(pieces.parent) > 1000
    for face, inside in enumerate(spots):
        own = pieces.parent == face
        gap = np.linalg.norm(inside[:, None] - pieces.centre[own], axis=2) - pieces.radius[own]
        assert gap.min(axis=1).max() <= 1e-12


def test_one_point_one_face() -> None:
    mesh = Mesh(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))
    found = points_to_mesh(np.array([[0.25, 0.25, 3.0]]), mesh)
    assert found.squared[0] == 9.0
    assert found.face[0] == 0
    np.testing.assert_array_equal(found.closest[0], [0.25, 0.25, 0.0])
    assert faces_to_points(mesh, np.array([[2.0, 0.0, 0.0]]))[0] == 1.0


def test_large_coordinates_keep_their_precision() -> None:
    rng = np.random.default_rng(5)
    offset = np.array([5.0e5, 5.4e6, 120.0])
    mesh = torus(24, 12)
    points = rng.normal(size=(200, 3))
    here = points_to_mesh(points, mesh).squared
    there = points_to_mesh(points + offset, Mesh(mesh.vertices + offset, mesh.faces)).squared
    np.testing.assert_allclose(np.sqrt(there), np.sqrt(here), atol=1e-8)


@pytest.mark.parametrize("points", [np.zeros((0, 3)), np.zeros((4, 2)), np.full((2, 3), np.nan)])
def test_unusable_points_are_refused(points: Floats) -> None:
    with pytest.raises(InputError):
        points_to_mesh(points, box(1))
    with pytest.raises(InputError):
        faces_to_points(box(1), points)

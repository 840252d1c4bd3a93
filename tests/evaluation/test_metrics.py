"""Metrics: hand-made cases, frozen numbers, and the slow way of computing each of them."""

import math
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.errors import InputError
from pointmend.evaluation.metrics import (
    PUBLISHED,
    Variant,
    chamfer,
    distances_to_surface,
    hausdorff,
    point_to_mesh,
    published_squared,
    published_support,
    share_worsened,
    spacing_variation,
    surface_error,
)
from pointmend.geometry.meshes import Mesh
from pointmend.geometry.procedural import gear, knot, torus
from pointmend.geometry.triangles import (
    faces_to_points,
    points_to_mesh,
    squared_to_triangles,
)

Floats = NDArray[np.float64]
VARIANTS: tuple[Variant, ...] = ("published", "exact")


def wavy(mesh: Mesh, step: int, height: float) -> Floats:
    """Every ``step``-th vertex, moved by a formula: test data without a random generator."""
    vertices = mesh.vertices[::step]
    phase = np.arange(len(vertices))[:, None] * np.array([0.7, 1.3, 2.1])
    moved: Floats = vertices + height * np.sin(phase)
    return moved


def plain_edge(p: Floats, a: Floats, b: Floats) -> float:
    length = float(((b - a) ** 2).sum())
    if length <= 1e-8:
        return float(((p - b) ** 2).sum())
    t = min(max(float((p - a) @ (b - a)) / length, 0.0), 1.0)
    return float(((p - (a + t * (b - a))) ** 2).sum())


def plain_published(p: Floats, v0: Floats, v1: Floats, v2: Floats) -> float:
    """The published point-triangle distance as one reads it, one pair at a time."""
    normal = np.cross(v1 - v0, v2 - v0)
    size = math.sqrt(float(normal @ normal))
    if size > 1e-8:
        unit = normal / size
        height = float((p - v0) @ unit)
        q = p - height * unit - v0
        e, f = v1 - v0, v2 - v0
        d00, d01, d11 = float(e @ e), float(e @ f), float(f @ f)
        bottom = d00 * d11 - d01 * d01 + 1e-8
        w1 = (d11 * float(q @ e) - d01 * float(q @ f)) / bottom
        w2 = (d00 * float(q @ f) - d01 * float(q @ e)) / bottom
        if all(0.0 <= w <= 1.0 for w in (w1, w2, 1.0 - w1 - w2)):
            return height * height
    return min(plain_edge(p, v0, v1), plain_edge(p, v0, v2), plain_edge(p, v1, v2))


def mixed_triangles(rng: np.random.Generator, each: int) -> Floats:
    """Triangles of the sizes at which the 1e-8 does nothing, something, and everything."""
    shape = rng.normal(size=(6 * each, 3, 3))
    for group, size in enumerate((1.0, 1e-2, 3e-3, 1e-3, 1e-4, 0.3)):
        shape[group * each : (group + 1) * each] *= size
    shape[-each:, 2] = shape[-each:, 1] + 1e-6 * rng.normal(size=(each, 3))
    corners: Floats = 0.5 * rng.normal(size=(6 * each, 1, 3)) + shape
    return corners


def soup(corners: Floats) -> Mesh:
    return Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))


def test_published_pairs_follow_the_definition() -> None:
    rng = np.random.default_rng(0)
    corners = mixed_triangles(rng, 100)
    for spread in (1e-3, 0.5):
        points = corners.mean(axis=1) + spread * rng.normal(size=(len(corners), 3))
        expected = [plain_published(p, *c) for p, c in zip(points, corners)]
        np.testing.assert_allclose(
            published_squared(points, corners), expected, rtol=1e-9, atol=1e-15
        )


def test_published_small_triangles_reach_beyond_themselves() -> None:
    # Legs of 0.01 give D = 1e-8, so the triangle counts as twice its size from the first corner.
    corners = 0.01 * np.array([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    above = np.array([[0.009, 0.009, 0.001]])
    assert published_squared(above, corners)[0] == pytest.approx(1e-6)
    assert squared_to_triangles(above, corners)[0] == pytest.approx(1e-6 + 2 * 0.004**2)
    beyond = np.array([[0.0101, 0.0101, 0.001]])
    assert published_squared(beyond, corners)[0] == pytest.approx(1e-6 + 2 * 0.0051**2)


def test_published_edges_without_length_count_as_their_second_end() -> None:
    needle = np.array([[[0.0, 0, 0], [9e-5, 0, 0], [9e-5, 0, 0]]])
    assert published_squared(np.zeros((1, 3)), needle)[0] == pytest.approx(81e-10)
    assert squared_to_triangles(np.zeros((1, 3)), needle)[0] == 0.0


def test_published_distance_never_undercuts_its_support() -> None:
    rng = np.random.default_rng(1)
    corners = mixed_triangles(rng, 100)
    support = published_support(corners)
    np.testing.assert_allclose(squared_to_triangles(corners[:, 1], support), 0.0, atol=1e-12)
    for spread in (1e-2, 1.0):
        points = corners.mean(axis=1) + spread * rng.normal(size=(len(corners), 3))
        published = np.sqrt(published_squared(points, corners))
        assert (published >= np.sqrt(squared_to_triangles(points, support)) - 1e-6).all()


@pytest.mark.parametrize("seed", range(4))
def test_published_search_is_exact_although_triangles_overreach(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mesh = soup(mixed_triangles(rng, 15))
    points = 0.5 * rng.normal(size=(200, 3))
    n, f = len(points), len(mesh.faces)
    corners = np.tile(mesh.corners, (n, 1, 1))
    pairs = published_squared(points.repeat(f, axis=0), corners).reshape(n, f)
    np.testing.assert_array_equal(
        points_to_mesh(points, mesh, PUBLISHED).squared, pairs.min(axis=1)
    )
    np.testing.assert_array_equal(faces_to_points(mesh, points, PUBLISHED), pairs.min(axis=0))
    # The case is only worth its name if true geometry has another answer.
    assert not np.allclose(points_to_mesh(points, mesh).squared, pairs.min(axis=1))


@pytest.mark.parametrize("variant", VARIANTS)
def test_point_to_mesh_is_the_sum_of_both_means_in_the_mesh_sphere(variant: Variant) -> None:
    mesh = torus(16, 8)
    moved = Mesh(7.0 * mesh.vertices + 100.0, mesh.faces)
    points = wavy(mesh, 3, 0.05)
    got = point_to_mesh(7.0 * points + 100.0, moved, variant)
    pair = plain_published if variant == "published" else None
    table = np.array(
        [
            [
                pair(p, *c) if pair else squared_to_triangles(p[None], c[None])[0]
                for c in mesh.corners
            ]
            for p in points
        ]
    )
    assert got.points == pytest.approx(table.min(axis=1).mean(), rel=1e-8)
    assert got.faces == pytest.approx(table.min(axis=0).mean(), rel=1e-8)
    assert got.total == got.points + got.faces
    assert got.variant == variant


# Shape, step, height of the waves; CD; P2M points and faces, published; the same, exact.
# Confirmed once by trying every pair. The last mesh is fine enough for the variants to part.
GOLDEN = [
    (
        torus(60, 30),
        3,
        0.02,
        [3.4397287394e-3, 1.9883340803e-4, 1.0895389022e-3, 1.9883340803e-4, 1.0895389022e-3],
    ),
    (
        gear(),
        7,
        0.03,
        [3.0232218281e-3, 4.5306966133e-4, 1.0256678346e-3, 4.5307319312e-4, 1.0256682658e-3],
    ),
    (
        knot(600, 40),
        50,
        0.01,
        [2.0849349840e-3, 4.9001284633e-5, 1.4802033950e-3, 4.9869076073e-5, 1.4802920841e-3],
    ),
]


@pytest.mark.parametrize(("mesh", "step", "height", "numbers"), GOLDEN)
def test_frozen_numbers(mesh: Mesh, step: int, height: float, numbers: list[float]) -> None:
    points = wavy(mesh, step, height)
    published, exact = point_to_mesh(points, mesh), point_to_mesh(points, mesh, "exact")
    got = [chamfer(points, mesh.vertices)]
    got += [published.points, published.faces, exact.points, exact.faces]
    assert got == pytest.approx(numbers, rel=1e-7)


def test_every_clean_vertex_scores_zero() -> None:
    mesh = torus()
    assert chamfer(mesh.vertices, mesh.vertices) == 0.0
    for variant in VARIANTS:
        got = point_to_mesh(mesh.vertices, mesh, variant)
        assert got.total == pytest.approx(0.0, abs=1e-25)


def test_chamfer_by_hand_and_normalised_by_the_clean_cloud() -> None:
    clean = np.array([[-2.0, 0, 0], [2, 0, 0], [0, 1, 0], [0, -1, 0]])
    prediction = np.array([[-2.0, 0, 1], [2, 0, 0]])
    # Radius 2. Forth: 1 and 0. Back: 1, 0, and 5 twice (to the point that stayed).
    assert chamfer(prediction, clean) == pytest.approx((0.5 + 11.0 / 4.0) / 4.0)
    assert chamfer(9.0 * prediction - 5.0, 9.0 * clean - 5.0) == pytest.approx(13.0 / 16.0)
    assert chamfer(clean, prediction) != pytest.approx(13.0 / 16.0)


def test_chamfer_the_slow_way() -> None:
    clean, prediction = knot().vertices[::20], wavy(knot(), 23, 0.05)
    table = ((prediction[:, None] - clean[None]) ** 2).sum(axis=2)
    centre = 0.5 * (clean.min(axis=0) + clean.max(axis=0))
    radius = np.sqrt(((clean - centre) ** 2).sum(axis=1).max())
    expected = (table.min(axis=1).mean() + table.min(axis=0).mean()) / radius**2
    assert chamfer(prediction, clean) == pytest.approx(expected)


def test_surface_error_in_input_units() -> None:
    square = Mesh(
        np.array([[0.0, 0, 0], [50, 0, 0], [50, 50, 0], [0, 50, 0]]),
        np.array([[0, 1, 2], [0, 2, 3]]),
    )
    heights = np.arange(1.0, 101.0)
    points = np.stack((np.full(100, 20.0), np.full(100, 10.0), heights), axis=1)
    got = surface_error(distances_to_surface(points, square))
    assert got.rms == pytest.approx(math.sqrt(sum(h * h for h in range(1, 101)) / 100))
    assert got.percentile_95 == pytest.approx(95.05)
    assert got.largest == pytest.approx(100.0)


def test_share_worsened_counts_points_that_moved_away() -> None:
    plane = Mesh(np.array([[-9.0, -9, 0], [9, -9, 0], [0, 9, 0]]), np.array([[0, 1, 2]]))
    noisy = np.array([[0.0, 0, 1], [0, 1, -1], [1, 0, 2], [1, 1, 0.5]])
    moved = np.array([[0.0, 0, 0.5], [0, 1, 1], [1, 0, -3], [1, 1, 0]])
    before, after = distances_to_surface(noisy, plane), distances_to_surface(moved, plane)
    assert share_worsened(before, after) == 0.25
    with pytest.raises(InputError, match="point by point"):
        share_worsened(before, after[:3])


def test_hausdorff_looks_both_ways() -> None:
    first = np.array([[0.0, 0, 0], [1, 0, 0]])
    second = np.array([[0.0, 0, 0], [1, 0, 0], [1, 0, 4]])
    assert hausdorff(first, second) == hausdorff(second, first) == 4.0


def test_spacing_variation() -> None:
    lattice = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    assert spacing_variation(lattice) == 0.0
    assert spacing_variation(5.0 * lattice) == 0.0
    line = np.array([[0.0, 0, 0], [1, 0, 0], [4, 0, 0], [7, 0, 0]])  # gaps 1, 1, 3, 3
    assert spacing_variation(line) == pytest.approx(0.5)
    flat = np.random.default_rng(0).uniform(size=(4000, 3)) * [1.0, 1.0, 0.0]
    assert spacing_variation(flat) == pytest.approx(0.52, abs=0.03)
    with pytest.raises(InputError, match="two points"):
        spacing_variation(line[:1])


def test_unusable_input_is_refused() -> None:
    mesh = torus(8, 6)
    with pytest.raises(InputError, match="N x 3"):
        chamfer(np.zeros((5, 2)), mesh.vertices)
    with pytest.raises(InputError, match="finite"):
        point_to_mesh(np.full((3, 3), np.nan), mesh)
    with pytest.raises(InputError, match="coincide"):
        chamfer(mesh.vertices, np.ones((5, 3)))
    with pytest.raises(InputError, match="variant"):
        point_to_mesh(mesh.vertices, mesh, cast(Variant, "newest"))

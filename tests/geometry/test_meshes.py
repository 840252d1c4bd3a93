"""Meshes: reading, measuring, sampling."""

import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.errors import FileFormatError, InputError
from pointmend.geometry.meshes import (
    Mesh,
    face_areas,
    face_normals,
    poisson_disk,
    read_mesh,
    sample_surface,
    unit_sphere,
)
from pointmend.geometry.procedural import box, torus
from pointmend.geometry.triangles import points_to_mesh

Floats = NDArray[np.float64]

VERTICES = np.array([[0.0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0], [9.123456789012345, -1e-7, 3]])
FACES = np.array([[0, 1, 2], [2, 3, 0], [4, 1, 0]])

OFF = """OFF
5 3 0
0 0 0
2 0 0
2 1 0
0 1 0
9.123456789012345 -1e-7 3
3 0 1 2
3 2 3 0
3 4 1 0
"""
OBJ = """# a comment
mtllib missing.mtl
o first
v 0 0 0
v 2 0 0 1.0
v 2 1 0
vt 0 0
vn 0 0 1
usemtl red
f 1/1/1 2/1/1 3/1/1
v 0 1 0
o second
usemtl blue
f 3//1 4//1 1//1
v 9.123456789012345 -1e-7 3
f -1 2 1
"""
PLY_HEADER = """ply
format {form} 1.0
comment made by hand
element vertex 5
property double x
property double y
property double z
element face 3
property list uchar int vertex_indices
end_header
"""


def _write(path: Path, name: str) -> Path:
    path = path / name
    if name.endswith(".off"):
        path.write_text(OFF)
    elif name.endswith(".obj"):
        path.write_text(OBJ)
    elif name == "text.ply":
        rows = [" ".join(repr(float(x)) for x in v) for v in VERTICES]
        rows += ["3 " + " ".join(str(i) for i in f) for f in FACES]
        path.write_text(PLY_HEADER.format(form="ascii") + "\n".join(rows) + "\n")
    elif name == "binary.ply":
        body = VERTICES.astype("<f8").tobytes()
        body += b"".join(struct.pack("<Biii", 3, *f) for f in FACES)
        path.write_bytes(PLY_HEADER.format(form="binary_little_endian").encode() + body)
    return path


def _write_stl(path: Path, binary: bool) -> Path:
    corners = VERTICES[FACES]
    if binary:
        body = b"".join(
            np.concatenate((np.zeros(3), c.ravel())).astype("<f4").tobytes() + b"\0\0"
            for c in corners
        )
        path.write_bytes(b"by hand".ljust(80) + struct.pack("<I", len(corners)) + body)
    else:
        lines = ["solid x"]
        for c in corners:
            lines += ["facet normal 0 0 1", "outer loop"]
            lines += ["vertex " + " ".join(f"{x:.9g}" for x in v) for v in c]
            lines += ["endloop", "endfacet"]
        path.write_text("\n".join([*lines, "endsolid x", ""]))
    return path


@pytest.mark.parametrize("name", ["a.off", "A.OFF", "a.obj", "text.ply", "binary.ply"])
def test_vertices_and_faces_stay_as_in_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    _write(tmp_path, name.lower()).rename(path)
    mesh = read_mesh(path)
    np.testing.assert_array_equal(mesh.vertices, VERTICES)
    np.testing.assert_array_equal(mesh.faces, FACES)
    assert mesh.vertices.dtype == np.float64
    assert mesh.faces.dtype == np.int64


def test_equal_and_unused_vertices_are_neither_merged_nor_dropped(tmp_path: Path) -> None:
    rows = "0 0 0\n1 0 0\n0 1 0\n1 0 0\n7 7 7\n0 0 0\n"
    faces = "3 0 1 2\n3 5 2 3\n3 1 1 2\n3 0 1 2\n"
    (tmp_path / "a.off").write_text("OFF\n6 4 0\n" + rows + faces)
    header = PLY_HEADER.format(form="ascii").replace("vertex 5", "vertex 6")
    (tmp_path / "a.ply").write_text(header.replace("face 3", "face 4") + rows + faces)
    for name in ("a.off", "a.ply"):
        mesh = read_mesh(tmp_path / name)
        np.testing.assert_array_equal(mesh.vertices, np.array(rows.split(), float).reshape(-1, 3))
        np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [5, 2, 3], [1, 1, 2], [0, 1, 2]])


@pytest.mark.parametrize("binary", [True, False])
def test_stl_triangles(tmp_path: Path, binary: bool) -> None:
    mesh = read_mesh(_write_stl(tmp_path / "a.stl", binary))
    np.testing.assert_allclose(mesh.corners, VERTICES[FACES], rtol=1e-7, atol=1e-9)


def test_polygons_become_triangles(tmp_path: Path) -> None:
    quad = "v 0 0 0\nv 2 0 0\nv 2 1 0\nv 0 1 0\nf 1 2 3 4\n"
    (tmp_path / "q.obj").write_text(quad)
    (tmp_path / "q.off").write_text("OFF\n4 1 0\n0 0 0\n2 0 0\n2 1 0\n0 1 0\n4 0 1 2 3\n")
    for name in ("q.obj", "q.off"):
        mesh = read_mesh(tmp_path / name)
        assert face_areas(mesh).sum() == pytest.approx(2.0)
        np.testing.assert_allclose(face_normals(mesh), [[0, 0, 1]] * len(mesh.faces))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("points_only.off", "OFF\n2 0 0\n0 0 0\n1 1 1\n"),
        ("out_of_range.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n"),
        ("nan.off", "OFF\n3 1 0\n0 0 0\n1 0 nan\n0 1 0\n3 0 1 2\n"),
        ("cut.off", "OFF\n30 10 0\n0 0 0\n1 0 0\n"),
        ("nonsense.off", "hello"),
        ("empty.off", ""),
        ("points_only.obj", "v 0 0 0\nv 1 1 1\n"),
        ("out_of_range.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n"),
        ("negative.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 -9\n"),
        ("nan.obj", "v 0 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3\n"),
        ("words.obj", "v a b c\nf 1 2 3\n"),
        ("short.obj", "v 0 0\nv 1 0 0\nv 1 1 1\nf 1 2 3\n"),
        ("nonsense.ply", "ply\nhello"),
        ("empty.ply", ""),
        ("points_only.ply", PLY_HEADER.format(form="ascii").replace("face 3", "face 0")),
        ("cut.ply", PLY_HEADER.format(form="binary_little_endian") + "abc"),
        ("nonsense.stl", "hello"),
        ("empty.stl", ""),
        ("picture.png", "hello"),
        ("nosuffix", "hello"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FileFormatError, match=name.split(".")[0]):
        read_mesh(tmp_path / name)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"absent\.off"):
        read_mesh(tmp_path / "absent.off")


@pytest.mark.parametrize(
    ("vertices", "faces"),
    [
        (VERTICES, np.zeros((0, 3))),
        (VERTICES, np.array([[0, 1, 5]])),
        (VERTICES, np.array([[0, 1, -1]])),
        (VERTICES, np.array([[0, 1, 2, 3]])),
        (VERTICES[:, :2], FACES),
        (np.where(VERTICES > 5, np.inf, VERTICES), FACES),
    ],
)
def test_impossible_meshes_are_refused(vertices: Floats, faces: NDArray[np.int64]) -> None:
    with pytest.raises(InputError):
        Mesh(vertices, faces)


def test_unit_sphere_is_centred_on_the_bounding_box() -> None:
    points = np.array([[0.0, 0, 0], [0, 0, 0], [0, 0, 0], [4, 0, 0], [0, 2, 0]])
    centre, radius = unit_sphere(points)
    np.testing.assert_array_equal(centre, [2.0, 1.0, 0.0])
    assert radius == pytest.approx(np.sqrt(5.0))


def test_areas_and_normals() -> None:
    mesh = Mesh(
        np.array([[0.0, 0, 0], [0, 3, 0], [0, 0, 2], [1, 0, 0]]),
        np.array([[0, 1, 2], [0, 0, 3], [3, 1, 0]]),
    )
    np.testing.assert_allclose(face_areas(mesh), [3.0, 0.0, 1.5])
    np.testing.assert_allclose(face_normals(mesh), [[1, 0, 0], [0, 0, 0], [0, 0, 1]])
    assert face_areas(box(5)).sum() == pytest.approx(24.0 / 3.0)


def test_random_samples_follow_area_and_lie_on_their_faces() -> None:
    mesh = Mesh(
        np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 5], [0, 4, 5], [3, 0, 5]]),
        np.array([[0, 1, 2], [0, 0, 1], [3, 4, 5]]),
    )
    points, face = sample_surface(mesh, 20000, np.random.default_rng(0))
    share = np.bincount(face, minlength=3) / 20000
    np.testing.assert_allclose(share, [0.5 / 6.5, 0.0, 6.0 / 6.5], atol=0.01)
    np.testing.assert_array_equal(points[:, 2], np.where(face == 0, 0.0, 5.0))
    # The mean of a uniform triangle is its centroid.
    for index in (0, 2):
        centroid = mesh.corners[index].mean(axis=0)
        np.testing.assert_allclose(points[face == index].mean(axis=0), centroid, atol=0.03)
    assert points_to_mesh(points, mesh).squared.max() < 1e-24


def test_samples_are_reproducible() -> None:
    first, again = (sample_surface(torus(), 50, np.random.default_rng(7))[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = sample_surface(torus(), 50, np.random.default_rng(8))[0]
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("mesh", [torus(), box()], ids=["torus", "box"])
def test_poisson_points_are_evenly_spread(mesh: Mesh) -> None:
    count = 1500
    even = poisson_disk(mesh, count, np.random.default_rng(0))
    strewn, _ = sample_surface(mesh, count, np.random.default_rng(0))
    assert even.shape == (count, 3)
    assert points_to_mesh(even, mesh).squared.max() < 1e-24
    packed = np.sqrt(2.0 * face_areas(mesh).sum() / (np.sqrt(3.0) * count))

    def nearest(points: Floats) -> float:
        return float(cKDTree(points).query(points, k=2)[0][:, 1].min() / packed)

    assert nearest(even) > 0.6
    assert nearest(strewn) < 0.1
    # Nor are there holes: no spot of the surface is far from the nearest point.
    spots, _ = sample_surface(mesh, 20000, np.random.default_rng(1))
    assert cKDTree(even).query(spots)[0].max() < 1.0 * packed


def test_elimination_removes_the_most_crowded_every_time() -> None:
    from pointmend.geometry.meshes import _eliminate

    points = np.random.default_rng(2).uniform(size=(150, 3)) * [1.0, 1.0, 0.0]
    reach, least, count = 0.2, 0.05, 40
    alive = list(range(len(points)))
    while len(alive) > count:
        gap = np.linalg.norm(points[alive][:, None] - points[alive][None], axis=2)
        crowd = np.where(gap < reach, (1.0 - np.clip(gap, least, reach) / reach) ** 8, 0.0)
        np.fill_diagonal(crowd, 0.0)
        alive.pop(int(crowd.sum(axis=1).argmax()))
    np.testing.assert_array_equal(_eliminate(points, count, reach, least), alive)


def test_sampling_needs_area_and_a_positive_count() -> None:
    flat = Mesh(np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]]), np.array([[0, 1, 2]]))
    with pytest.raises(InputError, match="area"):
        sample_surface(flat, 10, np.random.default_rng(0))
    with pytest.raises(InputError, match="at least 1"):
        poisson_disk(box(2), 0, np.random.default_rng(0))

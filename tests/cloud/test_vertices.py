"""Room `cloud`: meshes keep all but the places of their vertices."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trimesh.exchange.stl import export_stl_ascii

from pointmend.cloud import vertices_obj, vertices_off, vertices_stl
from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

quick = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))


def read_mesh(folder: Path, content: str | bytes, suffix: str) -> PointCloud:
    path = folder / f"mesh{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("latin-1"))
    return read(path)


def written(cloud: PointCloud, folder: Path, suffix: str) -> str:
    path = folder / f"written{suffix}"
    write(cloud, path)
    return path.read_text(encoding="latin-1")


def load(path: Path) -> Any:
    return trimesh.load(path, process=False)


def box() -> Any:
    return trimesh.creation.box((1.5, 2.25, 0.1))


@pytest.mark.parametrize("suffix", [".obj", ".off", ".stl"])
def test_trimesh_wrote_it_and_reads_it(tmp_path: Path, suffix: str) -> None:
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    box().export(source)
    cloud = read(source)
    theirs = load(source)
    corners = theirs.triangles.reshape(-1, 3) if suffix == ".stl" else theirs.vertices
    assert same(cloud.positions, corners)
    write(cloud, target)
    assert target.read_bytes() == source.read_bytes()

    moved = cloud.positions + np.float64(1 / 3)
    write(cloud.with_positions(moved), target)
    back = load(target)
    assert np.abs(back.triangles - theirs.triangles - 1 / 3).max() < 1e-6
    assert same(back.faces, theirs.faces)
    if suffix != ".stl":
        assert same(read(target).positions, moved)


OBJ = """# made by hand, Stra\xdfe 7
mtllib stone.mtl
o block
v 0 0 0.50 1.0 0.0 0.25
v  1.000 0 -0  0.5 0.5 0.5 # the corner
vn 0 0 1
vt 0.5 0.5
\tv 1e0 1.10 nan 0 0 1
g front
f 1//1 2//1 3//1
l 1 2
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_obj_keeps_all_other_lines(tmp_path: Path, line_end: str) -> None:
    text = OBJ.replace("\n", line_end)
    cloud = read_mesh(tmp_path, text, ".obj")
    assert same(cloud.positions, [[0, 0, 0.5], [1, 0, 0], [1, 1.1, np.nan]])
    assert {name: v.tolist() for name, v in cloud.attributes.items()} == {
        "red": [1, 0.5, 0],
        "green": [0, 0.5, 0],
        "blue": [0.25, 0.5, 1],
    }
    assert written(cloud, tmp_path, ".obj").replace("\n", line_end) == text
    moved = cloud.positions.copy()
    moved[1] = [1 / 3, -0.0, 5e5]
    wanted = text.replace(
        "v  1.000 0 -0  0.5 0.5 0.5", "v  0.3333333333333333 -0.0 500000.0 0.5 0.5 0.5"
    )
    assert written(cloud.with_positions(moved), tmp_path, ".obj").replace("\n", line_end) == wanted
    negative = cloud.positions.copy()
    negative[0, 0] = -0.0
    assert "v -0.0 0.0 0.5 1.0 0.0 0.25" in written(
        cloud.with_positions(negative), tmp_path, ".obj"
    )


def test_obj_colours_can_go_come_and_change(tmp_path: Path) -> None:
    cloud = read_mesh(tmp_path, OBJ, ".obj")
    bare = PointCloud(cloud.positions, {}, cloud.metadata)
    assert "v 0.0 0.0 0.5\nv  1.0 0.0 -0.0 # the corner\n" in written(bare, tmp_path, ".obj")
    assert "f 1//1 2//1 3//1\n" in written(bare, tmp_path, ".obj")
    partly = bare.with_attribute("red", np.ones(3))
    assert vertices_obj.losses(partly) == ("attribute 'red'",)
    assert "v 0.0 0.0 0.5\n" in written(partly, tmp_path, ".obj")
    changed = cloud.with_attribute("red", np.array([1.0, 0.5, 0.75]))
    assert written(changed, tmp_path, ".obj") == OBJ.replace(
        "v 1e0 1.10 nan 0 0 1", "v 1.0 1.1 nan 0.75 0.0 1.0"
    )
    plain = read_mesh(tmp_path, "v 1 2 3\nf 1 1 1\n", ".obj")
    for name, value in (("red", 0.5), ("green", 0.25), ("blue", 1.0), ("label", 7.0)):
        plain = plain.with_attribute(name, np.array([value]))
    assert vertices_obj.losses(plain) == ("attribute 'label'",)
    assert written(plain, tmp_path, ".obj") == "v 1.0 2.0 3.0 0.5 0.25 1.0\nf 1 1 1\n"


def test_obj_colours_as_bytes_stay_bytes(tmp_path: Path) -> None:
    text = "v 1 2 3 255 0 7\nv 4 5 6 1 2 3\n"
    cloud = read_mesh(tmp_path, text, ".obj")
    assert cloud.attributes["red"].dtype == np.uint8
    assert cloud.attributes["blue"].tolist() == [7, 3]
    assert written(cloud, tmp_path, ".obj") == text
    assert written(cloud[::-1], tmp_path, ".obj") == "v 4 5 6 1 2 3\nv 1 2 3 255 0 7\n"
    red = cloud.with_attribute("red", np.array([9, 1], np.uint8))
    assert written(red, tmp_path, ".obj") == "v 1.0 2.0 3.0 9 0 7\nv 4 5 6 1 2 3\n"
    for odd in ("v 4 5 6 256 2 3\n", "v 4 5 6 1 2.5 3\n", "v 4 5 6 -1 2 3\n", "v 4 5 6 nan 2 3\n"):
        assert read_mesh(tmp_path, text + odd, ".obj").attributes["red"].dtype == np.float64
    pure = read_mesh(tmp_path, "v 1 2 3 1 0 0\n", ".obj")
    assert pure.attributes["red"].dtype == np.float64
    assert written(pure, tmp_path, ".obj") == "v 1 2 3 1 0 0\n"


@pytest.mark.parametrize(
    ("colours", "wanted"),
    [
        (np.array([[255, 51, 0]], np.uint8), "1.0 0.2 0.0"),
        (np.array([[65535, 13107, 0]], np.uint16), "1.0 0.2 0.0"),
        (np.array([[255, 51, 0]]), "1.0 0.2 0.0"),
        (np.array([[0.75, 0.5, 2.0]]), "0.75 0.5 2.0"),
        (np.array([[0.1, 0.5, 0]], np.float32), "0.1 0.5 0.0"),
        (np.array([[300, 51, 0]]), None),
        (np.array([[-1, 51, 0]]), None),
        (np.array([[True, False, True]]), None),
        (np.array([["a", "b", "c"]]), None),
    ],
)
def test_obj_from_elsewhere(tmp_path: Path, colours: Any, wanted: str | None) -> None:
    names = ["red", "green", "blue"]
    cloud = PointCloud(
        np.array([[5e5 + 1 / 3, np.nan, 0.1]]),
        {**{name: colours[:, i] for i, name in enumerate(names)}, "w": np.ones(1)},
    )
    lost = ["w"] if wanted else [*names, "w"]
    assert vertices_obj.losses(cloud) == tuple(f"attribute '{name}'" for name in lost)
    tail = f" {wanted}" if wanted else ""
    assert written(cloud, tmp_path, ".obj") == f"v 500000.3333333333 nan 0.1{tail}\n"
    assert same(read(tmp_path / "written.obj").positions, cloud.positions)


def test_obj_weights(tmp_path: Path) -> None:
    cloud = read_mesh(tmp_path, "v 1 2 3 0.50\nv 4 5 6 1\n", ".obj")
    assert cloud.attributes["w"].tolist() == [0.5, 1.0]
    assert vertices_obj.losses(cloud) == ()
    moved = cloud.positions.copy()
    moved[1] = 7
    text = written(cloud.with_positions(moved), tmp_path, ".obj")
    assert text == "v 1 2 3 0.50\nv 7.0 7.0 7.0 1.0\n"
    bare = PointCloud(cloud.positions, {}, cloud.metadata)
    assert written(bare, tmp_path, ".obj") == "v 1.0 2.0 3.0\nv 4.0 5.0 6.0\n"


@pytest.mark.parametrize("rest", ["9 8", "1 2 3 4", "1 0 0 # red\nv 1 2 3"])
def test_obj_numbers_that_are_not_understood_are_kept(tmp_path: Path, rest: str) -> None:
    cloud = read_mesh(tmp_path, f"v 1 2 3 {rest}\nv 4 5 6 {rest}\n", ".obj")
    assert cloud.attributes == {}
    moved = cloud.positions.copy()
    moved[-1] += 0.5
    text = written(cloud.with_positions(moved), tmp_path, ".obj")
    assert text.startswith(f"v 1 2 3 {rest}\nv 4")
    assert text.endswith(f"{moved[-1, 0]} {moved[-1, 1]} {moved[-1, 2]}{text.split('.5')[-1]}")
    assert len(text.split()) == len(f"v 1 2 3 {rest}\nv 4 5 6 {rest}\n".split())
    coloured = cloud
    for name in ("red", "green", "blue"):
        coloured = coloured.with_attribute(name, np.ones(len(cloud)))
    assert len(vertices_obj.losses(coloured)) == 3
    assert written(coloured, tmp_path, ".obj") == f"v 1 2 3 {rest}\nv 4 5 6 {rest}\n"


@pytest.mark.parametrize("blank", ["\xa0", "\x85", "\x1c", "\t"])
def test_odd_blanks(tmp_path: Path, blank: str) -> None:
    for content, suffix in (("v 1 2 3 9 8{}7\n", ".obj"), ("COFF\n1 0\n1 2 3 9 8{}7\n", ".off")):
        cloud = read_mesh(tmp_path, content.format(blank), suffix)
        assert cloud.attributes["blue"].tolist() == [7]
        assert written(cloud, tmp_path, suffix) == content.format(blank)
    rest = read_mesh(tmp_path, f"v 1 2{blank}3{blank}4 5\n", ".obj").with_positions([[9, 8, 7]])
    assert written(rest, tmp_path, ".obj") == "v 9.0 8.0 7.0 4 5\n"


def test_selected_vertices_drop_the_faces(tmp_path: Path) -> None:
    cloud = read_mesh(tmp_path, OBJ, ".obj")
    assert (
        written(cloud[[2, 0]], tmp_path, ".obj")
        == "v 1e0 1.10 nan 0 0 1\nv 0 0 0.50 1.0 0.0 0.25\n"
    )
    assert written(cloud[:], tmp_path, ".obj") == OBJ
    off = read_mesh(tmp_path, COFF, ".off")
    assert (
        written(off[[2, 0]], tmp_path, ".off") == "COFF\n2 0 0\n0 1 0 0 0 255 9\n0 0 0 255 0 0 7\n"
    )
    assert written(off[:], tmp_path, ".off") == COFF
    assert written(off[:0], tmp_path, ".off") == "COFF\n0 0 0\n"


COFF = """# corner
COFF # colours
3 1 0

0 0 0 255 0 0 7
1.50 0 0  0 255 0 8 # x
0 1 0 0 0 255 9
# faces
3 0 1 2 0.5 0.5 0.5
"""


def test_off_keeps_its_faces(tmp_path: Path) -> None:
    cloud = read_mesh(tmp_path, COFF, ".off")
    assert cloud.positions.tolist() == [[0, 0, 0], [1.5, 0, 0], [0, 1, 0]]
    assert cloud.attributes["alpha"].tolist() == [7, 8, 9]
    assert cloud.attributes["green"].dtype == np.uint8
    assert vertices_off.losses(cloud) == ()
    assert written(cloud, tmp_path, ".off") == COFF
    moved = cloud.positions.copy()
    moved[1, 2] = 1 / 3
    assert written(cloud.with_positions(moved), tmp_path, ".off") == COFF.replace(
        "1.50 0 0  0 255 0 8", "1.5 0.0 0.3333333333333333 0 255 0 8"
    )


def test_off_attributes_can_go(tmp_path: Path) -> None:
    cloud = read_mesh(tmp_path, COFF, ".off").with_attribute("label", np.arange(3))
    assert vertices_off.losses(cloud) == ("attribute 'label'",)
    names = ("red", "green", "blue")
    opaque = PointCloud(cloud.positions, {n: cloud.attributes[n] for n in names}, cloud.metadata)
    assert "COFF # colours\n3 1 0\n\n0.0 0.0 0.0 255 0 0\n" in written(opaque, tmp_path, ".off")
    bare = PointCloud(cloud.positions, {"red": np.ones(3)}, cloud.metadata)
    assert vertices_off.losses(bare) == ("attribute 'red'",)
    text = written(bare, tmp_path, ".off")
    assert text.startswith("# corner\nOFF # colours\n3 1 0\n\n0.0 0.0 0.0\n")
    assert text.endswith("# faces\n3 0 1 2 0.5 0.5 0.5\n")


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("OFF\n1 0 0\n1 2 3\n", []),
        ("OFF 1 0 0\n1 2 3\n", []),
        ("OFF1 0 0\n1 2 3\n", []),
        ("OFF\n1 0\n1 2 3", []),
        ("OFF\n1 0 0\n1 2 3 4 5\n", []),
        ("NOFF\n1 0 0\n1 2 3 0 0.6 0.8\n", ["nx", "ny", "nz"]),
        ("COFF\n1 0 0\n1 2 3 0.5 0.5 1\n", ["red", "green", "blue"]),
        ("CNOFF\n1 0 0\n1 2 3 0 0 1 9 9 9 9\n",
         ["nx", "ny", "nz", "red", "green", "blue", "alpha"]),
        ("STOFF\n1 0 0\n1 2 3 0.5 0.25\n", ["s", "t"]),
        ("STCNOFF\n1 0 0\n1 2 3 0 0 1 9 9 9 5 6\n",
         ["nx", "ny", "nz", "red", "green", "blue", "s", "t"]),
        ("COFF\n1 0 0\n1 2 3\n", []),
        ("NOFF\n1 0 0\n1 2 3 4\n", []),
    ],
)  # fmt: skip
def test_off_variants(tmp_path: Path, content: str, names: list[str]) -> None:
    cloud = read_mesh(tmp_path, content, ".off")
    assert cloud.positions.tolist() == [[1, 2, 3]]
    assert list(cloud.attributes) == names
    assert written(cloud, tmp_path, ".off") == content
    moved = written(cloud.with_positions([[7, 8, 9]]), tmp_path, ".off")
    assert "7.0 8.0 9.0" in moved
    assert len(moved.split()) == len(content.split())
    assert list(read(tmp_path / "written.off").attributes) == names


def test_off_from_elsewhere(tmp_path: Path) -> None:
    cloud = PointCloud(np.array([[5e5 + 1 / 3, 1, 2], [0.1, np.inf, -0.0]]), {"nx": np.ones(2)})
    assert vertices_off.losses(cloud) == ("attribute 'nx'",)
    wanted = "OFF\n2 0 0\n500000.3333333333 1.0 2.0\n0.1 inf -0.0\n"
    assert written(cloud, tmp_path, ".off") == wanted
    assert written(PointCloud(np.empty((0, 3))), tmp_path, ".off") == "OFF\n0 0 0\n"
    assert len(read(tmp_path / "written.off")) == 0


def stl(triangles: Any, normals: Any, extra: int = 0xABCD, head: bytes = b"solid?") -> bytes:
    """Write a binary STL value by value."""
    out = head.ljust(80, b"\x07") + struct.pack("<I", len(triangles))
    for triangle, normal in zip(triangles, normals):
        out += struct.pack("<12fH", *normal, *np.ravel(triangle), extra)
    return out


TRIANGLES = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 2, 1], [2, 0, 1]]], float)
NORMALS = [[0.0, 0.1, 0.9], [0.0, 0.0, 0.0]]
STL_TEXT = Path(__file__).with_name("two_triangles.stl").read_text()


def test_binary_stl_keeps_all_but_the_moved(tmp_path: Path) -> None:
    content = stl(TRIANGLES, NORMALS) + b"tail"
    cloud = read_mesh(tmp_path, content, ".stl")
    assert cloud.attributes == {}
    assert same(cloud.positions, TRIANGLES.reshape(-1, 3))
    write(cloud, tmp_path / "a.stl")
    assert (tmp_path / "a.stl").read_bytes() == content
    write(cloud.with_positions(cloud.positions * (1 + 1e-12)), tmp_path / "a.stl")
    assert (tmp_path / "a.stl").read_bytes() == content  # nothing that float32 could tell

    moved = TRIANGLES.copy()
    moved[:, 2] += 2 * moved[:, 2]
    write(cloud.with_positions(moved.reshape(-1, 3)), tmp_path / "a.stl")
    # The first normal is computed anew, the second was left to the reader and still is.
    wanted = stl(moved, [[0, 0, 1], [0, 0, 0]]) + b"tail"
    assert (tmp_path / "a.stl").read_bytes() == wanted


def test_text_stl_keeps_all_but_the_moved(tmp_path: Path) -> None:
    cloud = read_mesh(tmp_path, STL_TEXT, ".stl")
    assert same(cloud.positions, TRIANGLES.reshape(-1, 3))
    assert written(cloud, tmp_path, ".stl") == STL_TEXT
    moved = cloud.positions.copy()
    moved[1] = [1 / 3, 0, 0]
    moved[5] = [5, 0, 1]
    text = written(cloud.with_positions(moved), tmp_path, ".stl")
    wanted = STL_TEXT.replace("vertex 1.0 0 0", "vertex 0.3333333333333333 0.0 0.0")
    wanted = wanted.replace("normal 0 0.1 0.90", "normal 0.0 0.0 1.0")
    assert text == wanted.replace("VERTEX 2 0 1", "VERTEX 5.0 0.0 1.0")
    assert same(read(tmp_path / "written.stl").positions, moved)


def test_trimesh_reads_our_text_stl(tmp_path: Path) -> None:
    cloud = read_mesh(tmp_path, export_stl_ascii(box()), ".stl")
    assert same(cloud.positions, box().triangles.reshape(-1, 3))
    write(cloud.with_positions(cloud.positions * [1, 2, 3]), tmp_path / "a.stl")
    back = load(tmp_path / "a.stl")
    assert np.abs(back.triangles - box().triangles * [1, 2, 3]).max() < 1e-6
    lines = (tmp_path / "a.stl").read_text().splitlines()
    normals = [line.split()[2:] for line in lines if line.startswith("facet")]
    assert np.abs(np.array(normals, float) - back.face_normals).max() < 1e-6


def test_triangles_without_an_area_get_no_normal(tmp_path: Path) -> None:
    cloud = read_mesh(tmp_path, stl(TRIANGLES, [[0, 0, 1]] * 2), ".stl")
    flat = cloud.positions.copy()
    flat[:3] = 0.25
    flat[4] = np.nan
    write(cloud.with_positions(flat), tmp_path / "a.stl")
    content = (tmp_path / "a.stl").read_bytes()
    assert content == stl(flat.reshape(-1, 3, 3), [[0, 0, 0]] * 2)


def test_stl_needs_facets(tmp_path: Path) -> None:
    cloud = read_mesh(tmp_path, stl(TRIANGLES, NORMALS), ".stl")
    labelled = cloud.with_attribute("label", np.arange(6))
    assert vertices_stl.losses(labelled) == ("attribute 'label'",)
    write(labelled[:], tmp_path / "a.stl")
    for bare in (cloud[:3], cloud[::-1], PointCloud(cloud.positions)):
        with pytest.raises(FileFormatError, match=r"this cloud has none; write \.ply, \.obj"):
            write(bare, tmp_path / "a.stl")
    far = cloud.with_positions(cloud.positions / 3 + 5e6)
    with pytest.raises(FileFormatError, match="too coarse for where these points are"):
        write(far, tmp_path / "a.stl")


def test_stl_without_facets(tmp_path: Path) -> None:
    for content in (stl([], []), b"solid a\nendsolid a\n"):
        cloud = read_mesh(tmp_path, content, ".stl")
        assert len(cloud) == 0
        write(cloud, tmp_path / "a.stl")
        assert (tmp_path / "a.stl").read_bytes() == content


@given(
    st.lists(st.tuples(*[st.floats()] * 3), min_size=1, max_size=6),
    st.integers(0, 6),
    st.sampled_from([".obj", ".off", ".stl"]),
)
@quick
def test_any_float64_comes_back(
    tmp_path: Path, rows: list[tuple[float, ...]], still: int, suffix: str
) -> None:
    count = len(rows) * 3
    positions = np.repeat(np.array(rows), 3, axis=0)
    old = "7 7.0 0.7e1"
    facet = "facet normal 0 0 0\n" + f"vertex {old}\n" * 3 + "endfacet\n"
    text = {
        ".obj": f"v {old}\n" * count,
        ".off": f"OFF\n{count} 0 0\n" + f"{old}\n" * count,
        ".stl": "solid\n" + facet * len(rows) + "endsolid\n",
    }[suffix]
    cloud = read_mesh(tmp_path, text, suffix)
    positions[:still] = 7.0
    new = written(cloud.with_positions(positions), tmp_path, suffix)
    back = read(tmp_path / f"written{suffix}").positions
    assert same(back, positions)
    assert same(np.signbit(back), np.signbit(np.nan_to_num(positions)))
    assert new.count(old) >= min(still, count)


def test_empty_obj_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="at least one vertex"):
        write(PointCloud(np.empty((0, 3))), tmp_path / "a.obj")

"""Room `cloud`: PLY files come back as they were, whatever they hold."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud import ply
from pointmend.cloud.files import read, write
from pointmend.cloud.ply import PlyLayout
from pointmend.cloud.ply_header import Element, Header, Property
from pointmend.cloud.ply_rows import Lists
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

STRUCT = {
    "char": "b", "int8": "b", "uchar": "B", "uint8": "B", "short": "h", "int16": "h",
    "ushort": "H", "uint16": "H", "int": "i", "int32": "i", "uint": "I", "uint32": "I",
    "float": "f", "float32": "f", "double": "d", "float64": "d",
}  # fmt: skip
ORDER = {"binary_little_endian": "<", "binary_big_endian": ">"}
ENCODINGS = ["ascii", *ORDER]
quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass
class Table:
    """An element as plain Python: properties (name, word, count word) and rows of values."""

    name: str
    properties: list[tuple[str, str, str | None]]
    rows: list[list[Any]]


def naive_bytes(encoding: str, tables: list[Table], notes: list[str]) -> bytes:
    """Write a PLY file value by value."""
    lines = ["ply", f"format {encoding} 1.0", *notes]
    for table in tables:
        lines.append(f"element {table.name} {len(table.rows)}")
        for name, word, count in table.properties:
            lines.append(f"property {f'list {count} ' if count else ''}{word} {name}")
    out = ("\n".join([*lines, "end_header"]) + "\n").encode()
    for table in tables:
        for row in table.rows:
            words: list[str] = []
            for value, (_, word, count) in zip(row, table.properties):
                items = value if count else [value]
                if encoding == "ascii":
                    words += [str(len(items))] if count else []
                    words += [text_of(item, word) for item in items]
                    continue
                order = ORDER[encoding]
                out += struct.pack(order + STRUCT[count], len(items)) if count else b""
                out += struct.pack(f"{order}{len(items)}{STRUCT[word]}", *items)
            if encoding == "ascii":
                out += (" ".join(words) + "\n").encode()
    return out


def text_of(value: Any, word: str) -> str:
    return str(np.float32(value)) if STRUCT[word] == "f" else repr(value)


def values_of(word: str) -> st.SearchStrategy[Any]:
    code = STRUCT[word]
    if code in "fd":
        return st.floats(width=32 if code == "f" else 64, allow_nan=True)
    bits = 8 * struct.calcsize("=" + code)
    low = -(2 ** (bits - 1)) if code.islower() else 0
    return st.integers(low, low + 2**bits - 1)


@st.composite
def tables(draw: st.DrawFn, name: str, fixed: list[tuple[str, str]], count: int) -> Table:
    words = st.sampled_from(sorted(STRUCT))
    lengths = st.sampled_from(["uchar", "ushort", "int", "uint8", "uint32", "char"])
    names = st.text("abcdefXYZ_0123-é", min_size=1, max_size=6)
    extra = draw(st.lists(st.tuples(names, words, st.none() | lengths), max_size=3))
    properties: dict[str, tuple[str, str, str | None]] = {n: (n, w, None) for n, w in fixed}
    for found in extra:
        properties.setdefault(found[0], found)
    if not properties:
        properties["a"] = ("a", "int", None)
    order = draw(st.permutations(list(properties.values())))
    same = draw(st.none() | st.integers(0, 3))  # rows of one length take the quick way
    rows = [
        [
            draw(st.lists(values_of(w), min_size=same or 0, max_size=3 if same is None else same))
            if c
            else draw(values_of(w))
            for _, w, c in order
        ]
        for _ in range(count)
    ]
    return Table(name, order, rows)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, list[Table], list[str]]:
    axes = st.sampled_from(["float", "double", "float32", "short", "int"])
    positions = [(axis, draw(axes)) for axis in "xyz"]
    found = [draw(tables("vertex", positions, draw(st.integers(0, 3))))]
    for name in draw(st.lists(st.sampled_from(["face", "edge"]), unique=True)):
        found.append(draw(tables(name, [], draw(st.integers(0, 2)))))
    notes = draw(st.lists(st.sampled_from(["comment  made by é ", "obj_info num_cols 512"])))
    return draw(st.sampled_from(ENCODINGS)), draw(st.permutations(found)), notes


def same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))


@given(files())
@settings(quick, max_examples=60)
def test_any_file_comes_back(tmp_path: Path, file: tuple[str, list[Table], list[str]]) -> None:
    encoding, found, notes = file
    source, target = tmp_path / "in.ply", tmp_path / "out.ply"
    content = naive_bytes(encoding, found, notes)
    source.write_bytes(content)
    cloud = read(source)

    vertex = next(table for table in found if table.name == "vertex")
    layout = cloud.metadata["ply"]
    assert isinstance(layout, PlyLayout)
    scalars = [n for n, _, c in vertex.properties if not c and n not in "xyz"]
    assert list(cloud.attributes) == scalars
    for i, (name, word, count) in enumerate(vertex.properties):
        column = [row[i] for row in vertex.rows]
        dtype = np.dtype("=" + STRUCT[word])
        if name in "xyz":
            assert same(cloud.positions[:, "xyz".index(name)], np.array(column, dtype=dtype))
        elif count:
            lists = layout.lists[name]
            assert lists.values.dtype == dtype
            assert lists.lengths.tolist() == [len(items) for items in column]
            assert same(lists.values, np.array(list(chain(*column)), dtype=dtype))
        else:
            assert cloud.attributes[name].dtype == dtype
            assert same(cloud.attributes[name], np.array(column, dtype=dtype))

    write(cloud, target)
    # Byte by byte: names, types, order, comments, lists, other elements, endianness.
    assert normal(target.read_bytes()) == normal(content)


def normal(content: bytes) -> bytes:
    """Nan has one spelling in text, and no payload worth keeping in positions."""
    head, body = content.split(b"end_header\n", 1)
    if b"format ascii" not in head:
        return content
    lines = body.decode().split("\n")
    return head + "\n".join(" ".join(repr(float(w)) for w in ln.split()) for ln in lines).encode()


NAMES = st.text("abcxyz_ÅЖ9 ", min_size=2, max_size=8).filter(lambda n: n.strip() == n)
CODES = ["u1", "i1", "i2", "u2", "i4", "u4", "f4", "f8"]


@given(
    st.dictionaries(NAMES, st.sampled_from(CODES), max_size=4),
    st.sampled_from(ENCODINGS),
    st.integers(0, 2**32 - 1),
    st.integers(0, 20),
)
@quick
def test_clouds_made_in_memory_come_back(
    tmp_path: Path, types: dict[str, str], encoding: str, seed: int, count: int
) -> None:
    names = {"_".join(name.split()): name for name in types}
    rng = np.random.default_rng(seed)
    attributes = {
        name: rng.integers(0, 256, (count, 8), dtype=np.uint8).view(types[name])[:, 0]
        for name in names.values()
    }
    positions = rng.normal(size=(count, 3)) * [1.0, 1e-9, 1e9] + [5e5, 0, 5e6]
    positions[rng.random(positions.shape) < 0.2] = np.nan
    positions[rng.random(positions.shape) < 0.1] = -np.inf
    vertex = Element("vertex", count, tuple(Property(axis, "double") for axis in "xyz"))
    cloud = PointCloud(positions, attributes, {"ply": PlyLayout(Header(encoding, (vertex,)))})
    write(cloud, tmp_path / "a.ply")
    back = read(tmp_path / "a.ply")
    assert same(back.positions, positions)
    assert list(back.attributes) == list(names)
    for written, name in names.items():
        assert back.attributes[written].dtype == attributes[name].dtype
        assert same(back.attributes[written], attributes[name])


HAND_WRITTEN = b"""ply
format ascii 1.0
comment two triangles and a fan
obj_info scanner 7
element vertex 4
property float x
property float y
property list uchar short neighbours
property float z
property uchar red
element face 2
property list uchar int vertex_indices
property float area
element camera 1
property double focal
end_header
0 0 2 1 2 0 255
1 0 0 0.1 0
1 1 1 -7 0.25 128

nan 1 3 1 2 3 1e-3 7
3 0 1 2   0.500
4 0 1 2 3 1.00
35.0
"""


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_hand_written_ascii(tmp_path: Path, line_end: bytes) -> None:
    source, target = tmp_path / "hand.ply", tmp_path / "again.ply"
    source.write_bytes(HAND_WRITTEN.replace(b"\n", line_end))
    cloud = read(source)
    assert cloud.positions[:, 2].tolist() == [0.0, np.float32(0.1), 0.25, np.float32(1e-3)]
    assert np.isnan(cloud.positions[3, 0])
    assert cloud.attributes["red"].tolist() == [255, 0, 128, 7]
    assert cloud.attributes["red"].dtype == np.uint8
    layout = cloud.metadata["ply"]
    assert isinstance(layout, PlyLayout)
    assert layout.lists["neighbours"].lengths.tolist() == [2, 0, 1, 3]
    assert layout.lists["neighbours"].values.tolist() == [1, 2, -7, 1, 2, 3]
    assert layout.header.notes == ("comment two triangles and a fan", "obj_info scanner 7")

    write(cloud.with_attribute("moved", np.arange(4, dtype=np.float32)), target)
    text = target.read_bytes()
    assert text.endswith(b"3 0 1 2   0.500\n4 0 1 2 3 1.00\n35.0\n")
    assert b"property uchar red\nproperty float moved\nelement face 2" in text
    assert b"1.0 1.0 1 -7 0.25 128 2.0\n" in text


def test_selected_points_keep_their_lists_and_drop_the_faces(tmp_path: Path) -> None:
    source = tmp_path / "hand.ply"
    source.write_bytes(HAND_WRITTEN)
    cloud = read(source)
    part = cloud[[3, 0]]
    write(part, source)
    back = read(source)
    layout = back.metadata["ply"]
    assert isinstance(layout, PlyLayout)
    assert [e.name for e in layout.header.elements] == ["vertex"]
    assert layout.lists["neighbours"].lengths.tolist() == [3, 2]
    assert layout.lists["neighbours"].values.tolist() == [1, 2, 3, 1, 2]
    assert back.attributes["red"].tolist() == [7, 255]
    everything = cloud[:].metadata["ply"]
    assert isinstance(everything, PlyLayout)
    assert len(everything.header.elements) == 3


@given(st.lists(st.lists(st.integers(), max_size=4), min_size=1, max_size=8), st.data())
@quick
def test_taking_lists_against_python(rows: list[list[int]], data: st.DataObject) -> None:
    index = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    flat = np.array(list(chain(*rows)), dtype=object)
    taken = Lists(np.array([len(r) for r in rows]), flat).take(np.array(index, dtype=np.intp))
    assert taken.lengths.tolist() == [len(rows[i]) for i in index]
    assert taken.values.tolist() == list(chain(*(rows[i] for i in index)))


def header_types(path: Path) -> list[bytes]:
    head = path.read_bytes().split(b"end_header")[0]
    return [line.split()[1] for line in head.split(b"\n") if line.startswith(b"property")]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_float32_files_stay_float32_until_it_would_lose(tmp_path: Path, encoding: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 3)).astype(np.float32).tolist()
    table = Table("vertex", [(a, "float", None) for a in "xyz"], rows)
    source, target = tmp_path / "in.ply", tmp_path / "out.ply"
    source.write_bytes(naive_bytes(encoding, [table], []))
    cloud = read(source)

    moved = cloud.positions + rng.normal(scale=1e-3, size=(50, 3))
    write(cloud.with_positions(moved), target)
    assert header_types(target) == [b"float"] * 3
    assert np.abs(read(target).positions - moved).max() <= ply.precision(cloud)

    far = moved + np.array([5e5, 5e6, 0])
    write(cloud.with_positions(far), target)
    assert header_types(target) == [b"double", b"double", b"float"]
    assert same(read(target).positions[:, :2], far[:, :2])


def test_ascii_utm_declared_float_is_read_as_double(tmp_path: Path) -> None:
    table = Table("vertex", [(a, "float", None) for a in "xyz"], [])
    text = naive_bytes("ascii", [table], []).replace(b"vertex 0", b"vertex 2")
    text += b"500000.123 5000000.457 100.25\n500001.377 5000001.999 101.75\n"
    source = tmp_path / "utm.ply"
    source.write_bytes(text)
    cloud = read(source)
    assert cloud.positions[0].tolist() == [500000.123, 5000000.457, 100.25]
    write(cloud, source)
    assert read(source).positions[1].tolist() == [500001.377, 5000001.999, 101.75]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_utm_doubles_are_exact(tmp_path: Path, encoding: str) -> None:
    rng = np.random.default_rng(4)
    utm = (rng.random((200, 3)) * [1000, 1000, 50] + [5e5, 5e6, 100]).tolist()
    table = Table("vertex", [(a, "double", None) for a in "xyz"], utm)
    source = tmp_path / "utm.ply"
    source.write_bytes(naive_bytes(encoding, [table], []))
    cloud = read(source)
    assert cloud.positions.tolist() == utm
    write(cloud.with_positions(cloud.positions + 1e-7), source)
    assert same(read(source).positions, cloud.positions + 1e-7)


def test_clouds_from_elsewhere_are_binary_doubles(tmp_path: Path) -> None:
    target = tmp_path / "new.PLY"
    cloud = PointCloud(
        np.array([[5e5 + 1 / 3, 5e6 + 1 / 7, 0.1]]),
        {
            "flag": np.array([True]),
            "half": np.array([0.5], dtype=np.float16),
            "label": np.array([-5]),
            "big": np.array([2**32 - 1]),
            "huge": np.array([-(2**53)]),
            "normal": np.array([[0.0, 0.6, 0.8]]),
            "one": np.array([[7]], dtype=np.uint8),
        },
    )
    write(cloud, target)
    assert target.read_bytes().startswith(b"ply\nformat binary_little_endian 1.0\n")
    back = read(target)
    assert same(back.positions, cloud.positions)
    wanted = {
        "flag": "u1", "half": "f4", "label": "i4", "big": "u4", "huge": "f8",
        "normal_0": "f8", "normal_1": "f8", "normal_2": "f8", "one": "u1",
    }  # fmt: skip
    assert {name: v.dtype.str[1:] for name, v in back.attributes.items()} == wanted
    assert back.attributes["huge"].item() == -(2**53)
    assert back.attributes["normal_2"].item() == 0.8


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"word": np.array(["tree"])}, "real numbers only"),
        ({"t": np.array([2**62 + 1])}, "no PLY type holds"),
        ({"t": np.array([2**64 - 1], dtype=np.uint64)}, "no PLY type holds"),
        ({"a b": np.array([1]), "a_b": np.array([1])}, "already taken"),
        ({"n": np.ones((1, 2)), "n_1": np.array([1])}, "already taken"),
    ],
)
def test_what_ply_cannot_hold_is_refused(
    tmp_path: Path, attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(FileFormatError, match=message):
        write(PointCloud(np.zeros((1, 3)), attributes), tmp_path / "a.ply")
    assert list(tmp_path.iterdir()) == []


def test_latin_1_comments_survive(tmp_path: Path) -> None:
    source = tmp_path / "umlaut.ply"
    table = Table("vertex", [(a, "int", None) for a in "xyz"], [[1, 2, 3]])
    content = naive_bytes("ascii", [table], ["comment STRASSE"]).replace(b"STRASSE", b"Stra\xdfe")
    source.write_bytes(content)
    cloud = read(source)
    write(cloud, source)
    assert source.read_bytes() == content
    write(cloud.with_attribute("Ж", [1]), source)
    assert list(read(source).attributes) == ["Ж"]


def test_upper_case_axes_and_removed_attributes(tmp_path: Path) -> None:
    source = tmp_path / "upper.ply"
    properties = [("X", "double", None), ("t", "int", None), ("Y", "float", None)]
    table = Table("vertex", [*properties, ("Z", "float", None)], [[1.5, 9, 2.5, 3.5]])
    source.write_bytes(naive_bytes("binary_big_endian", [table], []))
    cloud = read(source)
    assert cloud.positions.tolist() == [[1.5, 2.5, 3.5]]
    write(PointCloud(cloud.positions, {}, cloud.metadata), source)
    back = read(source)
    assert back.attributes == {}
    assert back.positions.tolist() == [[1.5, 2.5, 3.5]]
    assert header_types(source) == [b"double", b"float", b"float"]


def test_a_few_bytes_after_the_last_row_are_kept(tmp_path: Path) -> None:
    table = Table("vertex", [(a, "double", None) for a in "xyz"], [[1.0, 2.0, 3.0]])
    content = naive_bytes("binary_little_endian", [table], []) + b"\n"
    (tmp_path / "a.ply").write_bytes(content)
    write(read(tmp_path / "a.ply"), tmp_path / "b.ply")
    assert (tmp_path / "b.ply").read_bytes() == content

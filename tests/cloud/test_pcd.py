"""Room `cloud`: PCD files come back as they were, in all three encodings."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud import pcd, pcd_rows
from pointmend.cloud.files import read, write
from pointmend.cloud.pcd import PcdLayout
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

ENCODINGS = ["ascii", "binary", "binary_compressed"]
TYPES = ["F 4", "F 8", "I 1", "I 2", "I 4", "I 8", "U 1", "U 2", "U 4", "U 8", "B 1"]
quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def dtype_of(kind: str) -> np.dtype[Any]:
    letter, size = kind.split()
    return np.dtype(f"<{'u' if letter == 'B' else letter.lower()}{size}")


def same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))


def same_bits(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def layout_of(cloud: PointCloud) -> PcdLayout:
    layout = cloud.metadata["pcd"]
    assert isinstance(layout, PcdLayout)
    return layout


def lzf_of_literals(data: bytes) -> bytes:
    """Pack without packing: runs of up to 32 bytes behind their length."""
    runs = [data[i : i + 32] for i in range(0, len(data), 32)]
    return b"".join(bytes([len(run) - 1]) + run for run in runs)


def lzf_unpacked(data: bytes) -> bytes:
    """Unpack byte by byte, as the description of LZF has it."""
    out = bytearray()
    at = 0
    while at < len(data):
        control = data[at]
        at += 1
        if control < 32:
            out += data[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += data[at]
            at += 1
        distance = ((control & 31) << 8) + data[at] + 1
        at += 1
        for _ in range(length + 2):
            out.append(out[-distance])
    return bytes(out)


@dataclass
class File:
    """A PCD file as plain Python: fields (name, type, count) and their columns (N, count)."""

    fields: list[tuple[str, str, int]]
    columns: list[npt.NDArray[Any]]
    encoding: str = "binary"
    width: int | None = None
    height: int = 1
    comments: tuple[str, ...] = ()
    version: str = "0.7"
    viewpoint: str | None = "0 0 0 1 0 0 0"

    def head(self) -> bytes:
        count = len(self.columns[0])
        lines = [*self.comments, f"VERSION {self.version}"]
        lines.append("FIELDS " + " ".join(name for name, _, _ in self.fields))
        lines.append("SIZE " + " ".join(kind.split()[1] for _, kind, _ in self.fields))
        lines.append("TYPE " + " ".join(kind.split()[0] for _, kind, _ in self.fields))
        lines.append("COUNT " + " ".join(str(count) for _, _, count in self.fields))
        lines.append(f"WIDTH {count if self.width is None else self.width}")
        lines.append(f"HEIGHT {self.height}")
        lines += [f"VIEWPOINT {self.viewpoint}"] if self.viewpoint else []
        lines += [f"POINTS {count}", f"DATA {self.encoding}", ""]
        return "\n".join(lines).encode()

    def plain_body(self) -> bytes:
        """The numbers of a binary file, or those of a compressed one before they are packed."""
        columns = [c.astype(dtype_of(kind)) for c, (_, kind, _) in zip(self.columns, self.fields)]
        if self.encoding == "binary_compressed":
            return b"".join(column.tobytes() for column in columns)
        rows = range(len(self.columns[0]))
        return b"".join(column[row].tobytes() for row in rows for column in columns)

    def content(self) -> bytes:
        body = self.plain_body()
        if self.encoding == "binary_compressed":
            packed = lzf_of_literals(body)
            body = struct.pack("<II", len(packed), len(body)) + packed
        if self.encoding == "ascii":
            rows = [
                " ".join(str(v) for column in self.columns for v in column[row])
                for row in range(len(self.columns[0]))
            ]
            body = "".join(f"{row}\n" for row in rows).encode()
        return self.head() + body


def random_column(
    rng: np.random.Generator, kind: str, count: int, width: int, any_bits: bool
) -> Any:
    dtype = dtype_of(kind)
    bits = rng.integers(0, 256, (count, width * dtype.itemsize), dtype=np.uint8)
    values: npt.NDArray[Any] = bits.view(dtype).reshape(count, width)
    if dtype.kind == "f" and not any_bits:
        values = np.where(np.isnan(values), np.dtype(dtype).type(np.nan), values)
    return values


@st.composite
def files(draw: st.DrawFn) -> File:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    encoding = draw(st.sampled_from(ENCODINGS))
    width, height = draw(st.sampled_from([(0, 1), (1, 1), (3, 1), (3, 2), (1, 4)]))
    axes = [(axis, draw(st.sampled_from(["F 4", "F 8", "I 2"])), 1) for axis in "xyz"]
    names = st.text("abcXYZ_0é", min_size=2, max_size=5) | st.just("_")
    sizes = st.sampled_from([1, 1, 2, 5])
    extra = draw(st.lists(st.tuples(names, st.sampled_from(TYPES), sizes), max_size=4))
    unique = {name: (name, kind, n) for name, kind, n in extra if name != "_"}
    padding = [field for field in extra if field[0] == "_"]
    fields = draw(st.permutations([*axes, *unique.values(), *padding]))
    # What is no coordinate may be any bits at all, in text any number.
    columns = [
        random_column(rng, kind, width * height, n, encoding != "ascii" and name not in "xyz")
        for name, kind, n in fields
    ]
    return File(
        fields,
        columns,
        encoding,
        width,
        height,
        tuple(draw(st.lists(st.sampled_from(["# .PCD v.7", "# scanned by é"])))),
        draw(st.sampled_from(["0.7", ".7", ".6"])),
        draw(st.sampled_from([None, "0 0 0 1 0 0 0", "1.50 -2e3 0 0.7 0 0.7 0"])),
    )


@given(files())
@quick
def test_any_file_comes_back(tmp_path: Path, file: File) -> None:
    source, target = tmp_path / "in.pcd", tmp_path / "out.pcd"
    source.write_bytes(file.content())
    cloud = read(source)
    wanted = {name for name, _, _ in file.fields} - {"x", "y", "z", "_"}
    assert set(cloud.attributes) == wanted
    for (name, kind, count), column in zip(file.fields, file.columns):
        if name in "xyz":
            assert same(cloud.positions[:, "xyz".index(name)], column[:, 0])
        elif name != "_":
            shape = (len(column),) if count == 1 else column.shape
            assert same_bits(cloud.attributes[name], column.astype(dtype_of(kind)).reshape(shape))

    write(cloud, target)
    # Byte by byte: names, types, order, padding, comments, viewpoint, rows and columns.
    written = target.read_bytes()
    assert written.startswith(file.head())
    body = written[len(file.head()) :]
    if file.encoding != "binary_compressed":
        assert written == file.content()
    else:
        packed, size = struct.unpack_from("<II", body)
        assert len(body) == 8 + packed
        assert lzf_unpacked(body[8:]) == file.plain_body()
        assert size == len(file.plain_body())


XYZ = [("x", "F 4", 1), ("y", "F 4", 1), ("z", "F 4", 1)]


def xyz_file(count: int = 4, encoding: str = "binary", **more: Any) -> File:
    rng = np.random.default_rng(1)
    columns = [rng.normal(size=(count, 1)).astype(np.float32) for _ in "xyz"]
    return File(list(XYZ), columns, encoding, **more)


def with_field(file: File, name: str, kind: str, column: npt.NDArray[Any]) -> File:
    file.fields.append((name, kind, column.shape[1]))
    file.columns.append(column)
    return file


OLDEST = b"""# .PCD v.5 - Point Cloud Data file format
VERSION .5
COLUMNS x y z
WIDTH 2
POINTS 2
DATA ascii
0.1 0.2 0.3
nan nan nan
"""


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_old_versions(tmp_path: Path, line_end: bytes) -> None:
    source = tmp_path / "old.pcd"
    source.write_bytes(OLDEST.replace(b"\n", line_end))
    cloud = read(source)
    assert cloud.positions[0].tolist() == np.array([0.1, 0.2, 0.3], np.float32).tolist()
    assert np.isnan(cloud.positions[1]).all()
    write(cloud, source)
    text = source.read_bytes()
    assert text.startswith(b"# .PCD v.5 - Point Cloud Data file format\nVERSION .5\nFIELDS x y z\n")
    assert b"VIEWPOINT" not in text
    assert text.endswith(b"DATA ascii\n0.1 0.2 0.3\nnan nan nan\n")


@pytest.mark.parametrize(
    ("counts", "shape"),
    [
        ("WIDTH 2\nHEIGHT 1\n", (2, 1)),
        ("WIDTH 2\n", (2, 1)),
        ("POINTS 2\n", (2, 1)),
        ("WIDTH 0\nHEIGHT 0\nPOINTS 2\n", (2, 1)),
        ("WIDTH 2\nHEIGHT 0\nPOINTS 2\n", (2, 1)),
        ("WIDTH 1\nHEIGHT 2\n", (1, 2)),
    ],
)
def test_counts_that_are_left_out(tmp_path: Path, counts: str, shape: tuple[int, int]) -> None:
    path = tmp_path / "a.pcd"
    path.write_text(f"FIELDS x y z\n{counts}\nDATA ascii\n1 2 3\n\n4 5 6")
    header = layout_of(read(path)).header
    assert (header.width, header.height) == shape
    assert read(path).positions.tolist() == [[1, 2, 3], [4, 5, 6]]


# Opaque colours are NaNs as floats, this one even one that signals.
COLOURS = np.array([0xFFFF8040, 0x00102030, 0x7F800001, 0xFF800000], np.uint32)


@pytest.mark.parametrize("encoding", ENCODINGS[1:])
def test_packed_colours_keep_their_bits(tmp_path: Path, encoding: str) -> None:
    file = with_field(xyz_file(encoding=encoding), "rgb", "F 4", COLOURS.view(np.float32)[:, None])
    path = tmp_path / "a.pcd"
    path.write_bytes(file.content())
    cloud = read(path)
    assert same_bits(cloud.attributes["rgb"].view(np.uint32), COLOURS)
    write(cloud.with_positions(cloud.positions + 0.01)[[2, 0]], path)
    assert same_bits(read(path).attributes["rgb"].view(np.uint32), COLOURS[[2, 0]])


def test_packed_colours_as_text(tmp_path: Path) -> None:
    head = b"FIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F F\nCOUNT 1 1 1 1\nPOINTS 2\nDATA ascii\n"
    path = tmp_path / "a.pcd"
    path.write_bytes(head + b"1 2 3 4294934592\n4 5 6 0\n")
    cloud = read(path)
    assert same_bits(cloud.attributes["rgb"], np.array([4294934592, 0], np.uint32))
    write(cloud, path)
    assert b"TYPE F F F F\n" in path.read_bytes()
    assert path.read_bytes().endswith(b"1.0 2.0 3.0 4294934592\n4.0 5.0 6.0 0\n")

    path.write_bytes(head + b"1 2\xa03 4294934592\n4 5 6 0\n")  # numpy takes that for a blank
    assert same_bits(read(path).attributes["rgb"], cloud.attributes["rgb"])

    path.write_bytes(head + b"1 2 3 4.2108e+06\n4 5 6 -1.5\n")
    cloud = read(path)
    assert same_bits(cloud.attributes["rgb"], np.array([4.2108e06, -1.5], np.float32))
    write(cloud, path)
    assert path.read_bytes().endswith(b"1.0 2.0 3.0 4.2108e+06\n4.0 5.0 6.0 -1.5\n")
    opaque = cloud.with_attribute("rgb", COLOURS[:2].view(np.float32))
    write(opaque, path)
    assert path.read_bytes().endswith(b" 4294934592\n4.0 5.0 6.0 1056816\n")
    assert b"TYPE F F F F\n" in path.read_bytes()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_organised_clouds(tmp_path: Path, encoding: str) -> None:
    file = xyz_file(6, encoding, width=3, height=2, viewpoint="1 2 3 1 0 0 0")
    for column in file.columns:
        column[[1, 4]] = np.nan
    path = tmp_path / "a.pcd"
    path.write_bytes(
        with_field(file, "_", "U 1", np.arange(18, dtype="u1").reshape(6, 3)).content()
    )
    cloud = read(path)
    assert cloud.attributes == {}
    assert np.isnan(cloud.positions).all(axis=1).tolist() == [False, True, False] * 2
    write(cloud[:].with_positions(cloud.positions + 0.1), path)
    back = read(path)
    assert b"WIDTH 3\nHEIGHT 2\nVIEWPOINT 1 2 3 1 0 0 0\nPOINTS 6\n" in path.read_bytes()
    assert np.isnan(back.positions).all(axis=1).tolist() == [False, True, False] * 2

    write(cloud[[5, 1]], path)
    assert b"WIDTH 2\nHEIGHT 1\nVIEWPOINT 1 2 3 1 0 0 0\nPOINTS 2\n" in path.read_bytes()
    (padding,) = layout_of(read(path)).padding
    assert padding.tolist() == [[15, 16, 17], [3, 4, 5]]
    turned = layout_of(cloud[::-1])  # all of them, but elsewhere in the grid
    assert (turned.header.width, turned.header.height) == (6, 1)
    assert turned.padding[0][0].tolist() == [15, 16, 17]


@pytest.mark.parametrize("encoding", ENCODINGS[1:])
def test_holes_may_be_nans_that_signal(tmp_path: Path, encoding: str) -> None:
    file = xyz_file(3, encoding)
    for column in file.columns:
        column.view(np.uint32)[1] = 0x7F800001
    path = tmp_path / "a.pcd"
    path.write_bytes(file.content())
    write(read(path), path)
    assert same(read(path).positions, np.concatenate(file.columns, axis=1).astype(np.float32))


def types_of(path: Path) -> bytes:
    lines = path.read_bytes().split(b"\nDATA ")[0].split(b"\n")
    return b" / ".join(line for line in lines if line.startswith((b"SIZE", b"TYPE")))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_float32_files_stay_float32_until_it_would_lose(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.pcd"
    path.write_bytes(xyz_file(50, encoding).content())
    cloud = read(path)
    moved = cloud.positions + np.random.default_rng(0).normal(scale=1e-3, size=(50, 3))
    write(cloud.with_positions(moved), path)
    assert types_of(path) == b"SIZE 4 4 4 / TYPE F F F"
    assert np.abs(read(path).positions - moved).max() <= pcd.precision(cloud) < 1e-6

    far = moved + np.array([5e5, 5e6, 0])
    write(cloud.with_positions(far), path)
    assert types_of(path) == b"SIZE 8 8 4 / TYPE F F F"
    assert same(read(path).positions[:, :2], far[:, :2])


def test_text_that_carries_more_than_its_type_is_read_as_double(tmp_path: Path) -> None:
    path = tmp_path / "a.pcd"
    path.write_text(
        "FIELDS x y z t s\nSIZE 4 4 4 4 4\nTYPE F F F F F\nCOUNT 1 1 1 1 2\nPOINTS 2\nDATA ascii\n"
        "500000.123 5000000.457 0.1 1700000000.25 0.1 0.2\n"
        "500001.377 5000001.999 0.2 1700000000.50 0.3 0.4\n"
    )
    cloud = read(path)
    assert cloud.positions[:, 1].tolist() == [5000000.457, 5000001.999]
    assert cloud.attributes["t"].tolist() == [1700000000.25, 1700000000.5]
    assert cloud.attributes["s"].dtype == np.float32
    write(cloud, path)
    assert types_of(path) == b"SIZE 8 8 4 8 4 / TYPE F F F F F"
    assert same(read(path).positions, cloud.positions)
    assert read(path).attributes["t"].tolist() == [1700000000.25, 1700000000.5]


def test_fields_can_come_go_and_change(tmp_path: Path) -> None:
    path = tmp_path / "a.pcd"
    file = with_field(xyz_file(), "a", "U 1", np.arange(4, dtype=np.uint8)[:, None])
    path.write_bytes(with_field(file, "b", "B 1", np.ones((4, 1), np.uint8)).content())
    cloud = read(path)
    new = PointCloud(cloud.positions, {"b": np.ones((4, 2)), "Z": np.ones(4)}, cloud.metadata)
    write(new, path)
    assert b"FIELDS x y z b Z\n" in path.read_bytes()
    assert b"COUNT 1 1 1 2 1\n" in path.read_bytes()
    assert same(read(path).attributes["b"], np.ones((4, 2)))
    capitals = path.read_bytes().replace(b"FIELDS x y z b Z\n", b"FIELDS X Y Z b c\n")
    path.write_bytes(capitals)
    write(read(path), path)
    assert path.read_bytes() == capitals
    with pytest.raises(FileFormatError, match="'X' has the name of another field"):
        write(read(path).with_attribute("X", np.ones(4)), path)


def test_compressed_files_have_a_largest_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pcd"
    path.write_bytes(xyz_file(4, "binary_compressed").content())
    monkeypatch.setattr(pcd_rows, "_MAX_PACKED", 100)
    with pytest.raises(FileFormatError, match="48 bytes are too many for a compressed PCD"):
        write(read(path), path)


def test_padding_that_is_named_but_not_stored(tmp_path: Path) -> None:
    file = xyz_file(4, "binary_compressed")
    head, body = file.content().split(b"DATA binary_compressed\n")
    for line in (b"FIELDS x y z", b"SIZE 4 4 4", b"TYPE F F F", b"COUNT 1 1 1"):
        head = head.replace(
            line, line + {b"F": b" _", b"S": b" 1", b"T": b" U", b"C": b" 4"}[line[:1]]
        )
    path = tmp_path / "a.pcd"
    path.write_bytes(head + b"DATA binary_compressed\n" + body)
    cloud = read(path)
    assert same(cloud.positions, np.concatenate(file.columns, axis=1))
    write(cloud, path)
    assert path.read_bytes().startswith(file.head())


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_last_page_may_be_filled_up(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.pcd"
    file = xyz_file(4, encoding)
    path.write_bytes(file.content() + (b"\n \n" if encoding == "ascii" else bytes(4096)))
    assert same(read(path).positions, np.concatenate(file.columns, axis=1))

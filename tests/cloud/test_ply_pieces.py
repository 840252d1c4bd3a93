"""Room `cloud`: PLY files in pieces give what they give as a whole, to the last byte."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud import ply
from pointmend.cloud.files import read, write
from pointmend.cloud.ply import PlyLayout
from pointmend.cloud.ply_pieces import create_pieces, open_pieces
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError, NotInPieces, PointmendError

if TYPE_CHECKING:
    from tests.cloud.conftest import LittleMemory

plyfile = pytest.importorskip("plyfile")
quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ORDERS = ["<", ">"]


def vertices(count: int = 11, xyz: str = "f4", **extra: str) -> npt.NDArray[Any]:
    rng = np.random.default_rng(count)
    row = [("x", xyz), ("nx", "f4"), ("y", xyz), ("z", xyz), ("red", "u1"), *extra.items()]
    table = np.zeros(count, dtype=row)
    for name in "xyz":
        table[name] = rng.normal(size=count) * 100
    table["nx"] = rng.normal(size=count)
    table["red"] = rng.integers(0, 256, count)
    return table


def faces(count: int, vertex_count: int, most: int = 5) -> npt.NDArray[Any]:
    rng = np.random.default_rng(count)
    table = np.empty(count, dtype=[("vertex_indices", object), ("area", "f8")])
    for i in range(count):
        length = rng.integers(0, most)
        table["vertex_indices"][i] = rng.integers(0, max(1, vertex_count), length).astype("i4")
        table["area"][i] = rng.random()
    return table


def save(path: Path, order: str = "<", before: bool = False, count: int = 11) -> Path:
    """Write a file with three elements by another library."""
    table = vertices(count, label="i2")
    edges = np.array([(0, 1), (2, 3)], dtype=[("a", "i4"), ("b", "i4")])
    elements = [
        plyfile.PlyElement.describe(table, "vertex"),
        plyfile.PlyElement.describe(faces(7, count), "face", {"vertex_indices": "i4"}),
        plyfile.PlyElement.describe(edges, "edge"),
    ]
    if before:
        elements.reverse()
    comments = ["made for a test", "  with  spaces"]
    plyfile.PlyData(elements, byte_order=order, comments=comments).write(path)
    return path


def pieces_of(path: Path, rows: int) -> list[PointCloud]:
    with open_pieces(path) as reader:
        return list(reader.pieces(rows))


def stream(source: Path, target: Path, rows: int, shift: float = 0.0) -> None:
    with open_pieces(source) as reader:
        template = next(reader.pieces(rows))
        with create_pieces(template, reader.count, target) as writer:
            for piece in reader.pieces(rows):
                writer.append(piece.with_positions(piece.positions + shift))


def put(pieces: list[PointCloud], count: int, target: Path) -> None:
    with create_pieces(pieces[0], count, target) as writer:
        for piece in pieces:
            writer.append(piece)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("rows", [1, 4, 11, 100])
@pytest.mark.parametrize("shift", [0.0, 1e-3])
def test_streaming_writes_what_writing_writes(
    tmp_path: Path, order: str, before: bool, rows: int, shift: float
) -> None:
    source = save(tmp_path / "in.ply", order, before)
    cloud = read(source)
    write(cloud.with_positions(cloud.positions + shift), tmp_path / "whole.ply")
    stream(source, tmp_path / "streamed.ply", rows, shift)
    assert (tmp_path / "streamed.ply").read_bytes() == (tmp_path / "whole.ply").read_bytes()
    if not shift:
        assert (tmp_path / "streamed.ply").read_bytes() == source.read_bytes()


@given(
    st.sampled_from(ORDERS),
    st.lists(st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8"]), max_size=4),
    st.sampled_from(["f4", "f8"]),
    st.integers(0, 9),
    st.integers(1, 5),
    st.binary(max_size=3),
    st.integers(0, 2**32 - 1),
)
@quick
def test_any_rows_come_back(
    tmp_path: Path, order: str, types: list[str], xyz: str, count: int, rows: int,
    trailing: bytes, seed: int,
) -> None:  # fmt: skip
    table = vertices(count, xyz, **{f"a{i}": code for i, code in enumerate(types)})
    noise = np.random.default_rng(seed).integers(0, 256, table.nbytes, dtype=np.uint8)
    for name in table.dtype.names or ():  # any bits, NaN and denormals among them
        if name.startswith("a"):
            column = np.ascontiguousarray(table[name])
            table[name] = noise[: column.nbytes].view(column.dtype)
    source, target = tmp_path / "in.ply", tmp_path / "out.ply"
    element = plyfile.PlyElement.describe(table, "vertex")
    plyfile.PlyData([element], byte_order=order).write(source)
    with source.open("ab") as file:
        file.write(trailing)
    stream(source, target, rows)
    assert target.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("order", ORDERS)
def test_pieces_are_parts_of_the_whole(tmp_path: Path, order: str) -> None:
    path = save(tmp_path / "in.ply", order)
    whole = read(path)
    start = 0
    for piece in pieces_of(path, 4):
        part = whole[start : start + 4]
        assert np.array_equal(piece.positions, part.positions)
        assert list(piece.attributes) == list(part.attributes) == ["nx", "red", "label"]
        for name, values in part.attributes.items():
            assert piece.attributes[name].dtype == values.dtype
            assert np.array_equal(piece.attributes[name], values)
        layout, other = piece.metadata["ply"], part.metadata["ply"]
        assert isinstance(layout, PlyLayout)
        assert isinstance(other, PlyLayout)
        assert layout.header == other.header
        assert layout.resolution > 0
        write(piece, tmp_path / "piece.ply")  # a piece is a cloud like any other
        write(part, tmp_path / "part.ply")
        assert (tmp_path / "piece.ply").read_bytes() == (tmp_path / "part.ply").read_bytes()
        start += len(piece)
    assert start == len(whole)


def test_reading_can_be_begun_again_and_overlap(tmp_path: Path) -> None:
    path = save(tmp_path / "in.ply")
    with open_pieces(path) as reader:
        assert reader.count == 11
        pairs = list(zip(reader.pieces(4), reader.pieces(4)))
        assert [len(a) for a, _ in pairs] == [4, 4, 3]
        assert all(np.array_equal(a.positions, b.positions) for a, b in pairs)


def test_a_file_without_points_gives_one_empty_piece(tmp_path: Path) -> None:
    path = save(tmp_path / "in.ply", count=0)
    (piece,) = pieces_of(path, 4)
    assert len(piece) == 0
    assert list(piece.attributes) == ["nx", "red", "label"]
    stream(path, tmp_path / "out.ply", 4)
    assert (tmp_path / "out.ply").read_bytes() == path.read_bytes()


def test_through_the_format(tmp_path: Path) -> None:
    path, target = save(tmp_path / "in.ply"), tmp_path / "out.ply"
    assert ply.FORMAT.pieces is not None
    with ply.FORMAT.pieces.open(path) as reader:
        template = next(reader.pieces(4))
        with ply.FORMAT.pieces.create(template, reader.count, target) as writer:
            for piece in reader.pieces(4):
                writer.append(piece)
    assert target.read_bytes() == path.read_bytes()


HEAD = "ply\nformat {}\nelement vertex {}\nproperty {} x\nproperty float y\nproperty float z\n"
LITTLE = "binary_little_endian 1.0"
ROWS = np.arange(6, dtype="<f4").tobytes()


def by_hand(form: str = LITTLE, count: str = "2", kind: str = "float", more: str = "") -> bytes:
    return (HEAD.format(form, count, kind) + more + "end_header\n").encode()


@pytest.mark.parametrize(
    "content",
    [
        by_hand("ascii 1.0") + b"1 2 3\n4 5 6\n",
        by_hand(more="property list uchar int a\n") + (ROWS[:12] + b"\0") * 2,
        by_hand(kind="int") + ROWS,
    ],
    ids=["text", "lists", "whole numbers"],
)
def test_what_must_be_read_as_a_whole(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.ply"
    path.write_bytes(content)
    assert len(read(path)) == 2
    with pytest.raises(NotInPieces, match="whole"), open_pieces(path):
        pass


FACES = "element face 2\nproperty list uchar int v\n"
HOSTILE = {
    "empty": b"",
    "no ply": b"\x89PNG" * 9,
    "cut": by_hand() + ROWS[:-1],
    "huge": by_hand(count=str(10**12)) + ROWS,
    "too long": by_hand() + ROWS * 2,
    "no z": by_hand().replace(b" z", b" w") + ROWS,
    "cut face": by_hand(more=FACES) + ROWS + b"\1....\2.......",
    "missing face": by_hand(more=FACES) + ROWS + b"\1....",
    "eaten by lists": by_hand(more=FACES + "element e 2\nproperty int a\n")
    + ROWS
    + b"\1....\1.......",
    "rows after faces": by_hand(more=FACES) + ROWS + b"\0\0" + ROWS,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused_as_by_reading(tmp_path: Path, case: str) -> None:
    path = tmp_path / "a.ply"
    path.write_bytes(HOSTILE[case])
    with pytest.raises(FileFormatError) as whole:
        ply.read(path)
    with pytest.raises(FileFormatError) as pieces, open_pieces(path):
        pass
    assert str(pieces.value) == str(whole.value)


@given(st.data())
@quick
def test_damaged_files_are_streamed_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "in.ply"
    content = bytearray(save(path, data.draw(st.sampled_from(ORDERS)), count=4).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    path.write_bytes(content)
    streamed, whole = tmp_path / "streamed.ply", tmp_path / "whole.ply"
    for made in (streamed, whole):
        made.unlink(missing_ok=True)
    with suppress(PointmendError):
        write(read(path), whole)
    try:
        stream(path, streamed, 3)
    except NotInPieces:
        return
    except PointmendError:
        streamed.unlink(missing_ok=True)
    assert streamed.exists() == whole.exists()
    assert not whole.exists() or streamed.read_bytes() == whole.read_bytes()


def test_many_rows_of_lists_are_walked_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pointmend.cloud.ply_pieces._ROWS_OF_LISTS", 3)
    path = save(tmp_path / "in.ply", before=True)
    stream(path, tmp_path / "out.ply", 5)
    assert (tmp_path / "out.ply").read_bytes() == path.read_bytes()
    body = b"".join(b"\2" + bytes(8) for _ in range(4)) + b"\2"
    path.write_bytes(by_hand(more=FACES.replace("2", "5")) + ROWS + body)
    with pytest.raises(FileFormatError, match=r"ends in face 2 .*\(after 3 others\)"):
        pieces_of(path, 1)


def test_fewer_points_come_without_faces(tmp_path: Path) -> None:
    path, target = save(tmp_path / "in.ply"), tmp_path / "out.ply"
    whole = read(path)
    kept = whole.attributes["red"] % 2 == 0
    assert 0 < kept.sum() < 11
    with open_pieces(path) as reader:
        template = next(reader.pieces(4))
        with create_pieces(template, int(kept.sum()), target) as writer:
            for piece in reader.pieces(4):
                writer.append(piece[piece.attributes["red"] % 2 == 0])
    write(whole[kept], tmp_path / "whole.ply")
    assert target.read_bytes() == (tmp_path / "whole.ply").read_bytes()


def test_a_template_of_selected_points_still_knows_the_faces(tmp_path: Path) -> None:
    path, target = save(tmp_path / "in.ply"), tmp_path / "out.ply"
    pieces = pieces_of(path, 4)
    put([pieces[0][:0], *pieces], 11, target)
    assert target.read_bytes() == path.read_bytes()


def test_a_whole_cloud_as_template_keeps_its_faces(tmp_path: Path) -> None:
    path, target = save(tmp_path / "in.ply", before=True), tmp_path / "out.ply"
    with path.open("ab") as file:
        file.write(b"\n")
    whole = read(path)
    put([whole], 11, target)
    assert target.read_bytes() == path.read_bytes()


def test_added_and_removed_attributes(tmp_path: Path) -> None:
    path, target = save(tmp_path / "in.ply"), tmp_path / "out.ply"

    def changed(cloud: PointCloud) -> PointCloud:
        attributes = {n: v for n, v in cloud.attributes.items() if n != "nx"}
        return PointCloud(
            cloud.positions, {**attributes, "moved": np.arange(len(cloud))}, cloud.metadata
        )

    pieces = [changed(piece) for piece in pieces_of(path, 4)]
    put(pieces, 11, target)
    back = read(target)
    assert list(back.attributes) == ["red", "label", "moved"]
    assert back.attributes["moved"].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2]
    layout = back.metadata["ply"]
    assert isinstance(layout, PlyLayout)
    assert [e.name for e in layout.header.elements] == ["vertex", "face", "edge"]


def test_clouds_from_elsewhere_become_doubles(tmp_path: Path) -> None:
    cloud = PointCloud(np.arange(12.0).reshape(4, 3) + 5e6, {"t": np.arange(4) / 3})
    put([cloud[:0], cloud[:3], cloud[3:]], 4, tmp_path / "a.ply")
    write(cloud, tmp_path / "b.ply")
    assert (tmp_path / "a.ply").read_bytes() == (tmp_path / "b.ply").read_bytes()


def test_a_streamed_file_keeps_its_types(tmp_path: Path) -> None:
    path, target = save(tmp_path / "in.ply"), tmp_path / "out.ply"
    stream(path, target, 4, shift=1e6)
    assert b"property float x\n" in target.read_bytes()
    far = read(path).positions + 1e6
    assert np.abs(read(target).positions - far).max() <= np.spacing(np.float32(1e6))
    moved = [p.with_positions(p.positions + 1e6) for p in pieces_of(path, 4)]
    put(moved, 11, tmp_path / "again.ply")
    assert (tmp_path / "again.ply").read_bytes() == target.read_bytes()


def refused(pieces: list[PointCloud], count: int, target: Path) -> str:
    with pytest.raises(FileFormatError) as caught:
        put(pieces, count, target)
    return str(caught.value)


def test_pieces_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path, target = save(tmp_path / "in.ply"), tmp_path / "out.ply"
    first, second, third = pieces_of(path, 4)
    assert "did not come" in refused([first, second], 11, target)
    assert "more than the announced 8" in refused([first, second, third], 8, target)
    other = first.with_attribute("more", np.zeros(4))
    assert "other columns than the first: x, nx, y, z, red, label, more" in refused(
        [first, other], 8, target
    )
    wide = first.with_attribute("label", np.full(4, 40_000))
    assert "'label' of a piece has numbers that no short holds" in refused([first, wide], 8, target)
    fine = first.with_attribute("label", np.full(4, 32_000))
    with create_pieces(first, 4, target) as writer:
        writer.append(fine)
    assert read(target).attributes["label"].tolist() == [32_000] * 4
    beyond = first.with_positions(first.positions + 1e39)
    assert "'x' of a piece has numbers that no float holds" in refused([first, beyond], 8, target)


def test_text_cannot_be_written_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "a.ply"
    path.write_bytes(by_hand("ascii 1.0") + b"1 2 3\n4 5 6\n")
    with pytest.raises(NotInPieces), create_pieces(read(path), 2, tmp_path / "b.ply"):
        pass


def test_holes_stay(tmp_path: Path) -> None:
    table = vertices(3)
    table["x"][1], table["y"][2] = np.nan, -np.inf
    path = tmp_path / "in.ply"
    plyfile.PlyData([plyfile.PlyElement.describe(table, "vertex")], byte_order="<").write(path)
    stream(path, tmp_path / "out.ply", 2)
    assert (tmp_path / "out.ply").read_bytes() == path.read_bytes()


def test_a_source_that_changed_is_not_copied_from(tmp_path: Path) -> None:
    path = save(tmp_path / "in.ply")
    pieces = pieces_of(path, 11)
    os.utime(path, ns=(1, 1))
    assert "was changed meanwhile" in refused(pieces, 11, tmp_path / "out.ply")
    layout = pieces[0].metadata["ply"]
    assert isinstance(layout, PlyLayout)
    assert layout.source is not None
    end = layout.source.after[1]
    longer = replace(layout.source, changed=1, after=(layout.source.after[0], end + 5))
    cut = replace(pieces[0], metadata={"ply": replace(layout, source=longer)})
    assert "became shorter" in refused([cut], 11, tmp_path / "out.ply")


def test_a_file_that_shrinks_while_read_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "in.ply")
    with open_pieces(path) as reader:
        os.truncate(path, 400)
        with pytest.raises(FileFormatError, match="became shorter"):
            list(reader.pieces(11))


def test_little_memory_is_needed(tmp_path: Path, little_memory: LittleMemory) -> None:
    count = 300_000
    path, target = tmp_path / "in.ply", tmp_path / "out.ply"
    triangles = np.zeros(2 * count, dtype=[("n", "u1"), ("v", "<i4", 3)])
    triangles["n"] = 3
    head = by_hand(count=str(count), more=FACES.replace("2", str(2 * count)))
    path.write_bytes(head + ROWS[:12] * count + triangles.tobytes())
    with little_memory(6_000_000):
        stream(path, target, 10_000)
    assert target.read_bytes() == path.read_bytes()
    assert path.stat().st_size > 11_000_000

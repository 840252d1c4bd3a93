"""Room `cloud`: damaged and lying files are refused in one line, in little memory."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import Damage, LittleMemory, ReadOrRefuse, Refuse

quick = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
XYZ = "property float x\nproperty float y\nproperty float z\n"
LITTLE, BIG = "binary_little_endian", "binary_big_endian"


def ply(encoding: str = LITTLE, elements: str = "", body: bytes = b"", count: str = "2") -> bytes:
    head = f"ply\nformat {encoding} 1.0\nelement vertex {count}\n{XYZ}{elements}end_header\n"
    return head.encode() + body


def npy(header: str | bytes, body: bytes = b"", version: int = 1) -> bytes:
    raw = header.encode() if isinstance(header, str) else header
    width = 2 if version == 1 else 4
    return b"\x93NUMPY" + bytes([version, 0]) + len(raw).to_bytes(width, "little") + raw + body


def npy_of(shape: str, descr: str = "'<f8'", body: bytes = b"") -> bytes:
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}", body)


def npz(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def triangles(order: str, lengths: list[int]) -> bytes:
    return b"".join(struct.pack(f"{order}I{n}i", n, *range(n)) for n in lengths)


POINTS = np.arange(6, dtype="<f4").tobytes()
FACES = "element face 3\nproperty list uint int vertex_indices\n"
TRILLION = str(10**12)

CORPUS: dict[str, tuple[str, bytes, str]] = {
    "empty ply": (".ply", b"", "not a PLY"),
    "empty text": (".txt", b"", "no points"),
    "empty npy": (".npy", b"", "not a NumPy"),
    "empty npz": (".npz", b"", "not a readable"),
    "png as ply": (".ply", b"\x89PNG\r\n\x1a\n" + bytes(100), "not a PLY"),
    "png as npz": (".npz", b"\x89PNG\r\n\x1a\n" + bytes(100), "not a readable"),
    "old Mac": (".ply", ply().replace(b"\n", b"\r"), "old Mac"),
    "only the magic": (".ply", b"ply\n", "end_header"),
    "header without end": (".ply", b"ply\nformat ascii 1.0\n" + b"comment a\n" * 9, "end_header"),
    "endless header": (".ply", b"ply\n" + b"comment a\n" * 200_000, "longer than"),
    "endless line": (".ply", b"ply\ncomment " + b"a" * 3_000_000, "end_header"),
    "no format": (".ply", ply().replace(b"format", b"comment"), "no format line"),
    "two formats": (".ply", ply().replace(b"element v", b"format ascii 1.0\nelement v"), "line 3"),
    "version": (".ply", ply().replace(b"1.0", b"2.0"), "line 2 is not understood"),
    "unknown encoding": (".ply", ply("binary_middle_endian"), "line 2 is not understood"),
    "unknown word": (".ply", ply(elements="propety int a\n"), "not understood: 'propety int a'"),
    "unknown type": (".ply", ply(elements="property quad a\n"), "line 7: no number type 'quad'"),
    "float count": (".ply", ply(elements="property list float int a\n"), "no list type"),
    "unknown item": (".ply", ply(elements="property list int quad a\n"), "no list type"),
    "negative count": (".ply", ply(count="-1"), "not understood"),
    "wordy count": (".ply", ply(count="many"), "not understood"),
    "fullwidth count": (".ply", ply(count="２"), "not understood"),
    "property first": (".ply", f"ply\nformat ascii 1.0\n{XYZ}end_header\n".encode(), "line 3"),
    "property twice": (".ply", ply(elements="property int x\n"), "'x' twice"),
    "element twice": (".ply", ply(elements="element vertex 1\n"), "'vertex' twice"),
    "no vertex": (".ply", ply().replace(b"vertex", b"cortex"), "no element 'vertex'"),
    "no z": (".ply", ply(body=POINTS).replace(b"float z", b"float w"), "no x, y and z"),
    "list as z": (
        ".ply",
        ply("ascii", body=b"1 2 1 3\n1 2 1 3\n").replace(b"float z", b"list uchar int z"),
        "no x, y and z",
    ),
    "rows of nothing": (".ply", ply(elements=f"element a {TRILLION}\n"), "no property"),
    "unprintable name": (".ply", ply("ascii", "property int \x07\n", b"1 2 3 4\n" * 2), "print"),
    "cut binary": (".ply", ply(body=POINTS[:-1]), "at least 24 bytes, but 23 follow"),
    "cut ascii": (".ply", ply("ascii", body=b"100 200 300\n"), "ends after 1 of 2 rows of vertex"),
    "cut ascii row": (".ply", ply("ascii", body=b"1 2 3\n40 50\n"), "vertex 2 has 2 values"),
    "cut ascii face": (
        ".ply",
        ply("ascii", FACES, b"1 2 3\n4 5 6\n3 0 1 1\n3 0 1 1\n3 0"),
        "face 1 is too short",
    ),
    "missing ascii face": (
        ".ply",
        ply("ascii", FACES, b"1 2 3\n4 5 6\n3 0 1 1\n3 0 1 1\n"),
        "ends after 2 of 3 rows of face",
    ),
    "word in ascii": (".ply", ply("ascii", body=b"1 2 3\n4 tree 6\n"), "vertex 2 has 'tree'"),
    "wide ascii": (".ply", ply("ascii", body=b"1 2 3 4\n4 5 6 7\n"), "vertex 1 has 4 values"),
    "carriage return in row": (".ply", ply("ascii", body=b"1 2 3\n4\r5 6\n"), "PLY "),
    "uchar 300": (".ply", ply("ascii", "property uchar a\n", b"1 2 3 4\n1 2 3 300\n"), "no uchar"),
    "uchar 1.5": (".ply", ply("ascii", "property uchar a\n", b"1 2 3 4\n1 2 3 1.5\n"), "no uchar"),
    "uint -1": (".ply", ply("ascii", "property uint a\n", b"1 2 3 4\n1 2 3 -1\n"), "no uint"),
    "int nan": (".ply", ply("ascii", "property int a\n", b"1 2 3 4\n1 2 3 nan\n"), "no int"),
    "too many binary": (".ply", ply(body=POINTS * 2), "24 bytes after the rows"),
    "too many ascii": (".ply", ply("ascii", body=b"1 2 3\n" * 3), "rows after those"),
    "huge binary": (".ply", ply(body=POINTS, count=TRILLION), "cut off or its header is wrong"),
    "huge ascii": (".ply", ply("ascii", body=b"1 2 3\n" * 2, count=TRILLION), "cut off or its"),
    "count of 30 digits": (".ply", ply(body=POINTS, count="9" * 30), "declares 9999"),
    # Python itself refuses to convert more than 4300 digits, with an error of its own.
    "count of 5000 digits": (".ply", ply(body=POINTS, count="9" * 5000), "declares 9999"),
    "left over in a list row": (
        ".ply",
        ply("ascii", "property list uchar int a\n", b"1 2 3 1 4\n1 2 3 1 4 5\n"),
        "vertex 2 has values left over",
    ),
    "huge faces": (".ply", ply(elements=FACES.replace("3", TRILLION), body=POINTS), "cut off or"),
    "huge list": (
        ".ply",
        ply(elements=FACES, body=POINTS + b"\xff\xff\xff\xff" + bytes(60)),
        "face 1 of 3: it is cut off, or its byte order",
    ),
    "negative list": (
        ".ply",
        ply(elements=FACES.replace("uint", "int"), body=POINTS + b"\xff" * 60),
        "face 1 has a list of -1",
    ),
    "little written as big": (
        ".ply",
        ply(BIG, FACES, POINTS + triangles("<", [3, 3, 4])),
        "byte order or a list length is wrong",
    ),
    "big written as little": (
        ".ply",
        ply(LITTLE, FACES, POINTS + triangles(">", [3, 3, 3])),
        "byte order or a list length is wrong",
    ),
    "cut face": (
        ".ply",
        ply(elements=FACES, body=POINTS + triangles("<", [3, 4, 3])[:-1]),
        "ends in face 3 of 3",
    ),
    # The smallest sizes fit the file, the lists have eaten what the next element needs.
    "vertices eaten by lists": (
        ".ply",
        f"ply\nformat {LITTLE} 1.0\n{FACES}element vertex 2\n{XYZ}end_header\n".encode()
        + triangles("<", [3, 3, 3]) + POINTS[:12],
        "ends before its 2 rows of vertex",
    ),
    "edges eaten by lists": (
        ".ply",
        ply(elements=FACES + "element edge 3\nproperty int a\n",
            body=POINTS + triangles("<", [3, 3, 3]) + bytes(8)),
        "ends before its 3 rows of edge",
    ),
    "cut vertex list": (
        ".ply",
        ply(elements="property list uchar int a\n", body=POINTS + b"\x00\x01"),
        "vertex 2 of 2|cut off",
    ),
    "npy garbage": (".npy", npy("{'descr': "), "header is damaged"),
    "npy nesting": (".npy", npy("(" * 9000), "header is damaged"),
    "npy call": (".npy", npy("__import__('os').getcwd()"), "header is damaged"),
    "npy list": (".npy", npy("[1, 2]"), "header is damaged"),
    "npy negative": (".npy", npy_of("(-1, 3)"), "header is damaged"),
    "npy true shape": (".npy", npy_of("(True, 3)"), "header is damaged"),
    "npy type": (".npy", npy_of("(1, 3)", "'<q99'"), "header is damaged"),
    "npy nested type": (".npy", npy_of("(1, 3)", "[('x',)]"), "header is damaged"),
    "npy object": (".npy", npy_of("(1, 3)", "'|O'", bytes(24)), "Python objects"),
    "npy nothing": (".npy", npy_of(f"({TRILLION}, 3)", "'|S0'"), "no size"),
    "npy huge": (".npy", npy_of(f"({TRILLION}, 3)", body=bytes(24)), "bytes, but 24 follow"),
    "npy overflow": (".npy", npy_of(f"({2**62}, 4)", body=bytes(24)), "bytes, but 24 follow"),
    "npy cut": (".npy", npy_of("(1, 3)", body=bytes(23)), "24 bytes, but 23 follow"),
    "npy long header": (".npy", npy("x", version=2)[:8] + b"\xff" * 4 + b"x", "header claims"),
    "npy version": (".npy", npy_of("(1, 3)").replace(b"Y\x01", b"Y\x09"), "not a NumPy"),
    "npz huge": (
        ".npz",
        npz(("points.npy", npy_of(f"({TRILLION}, 3)", body=bytes(24)))),
        "bytes, but 24 follow",
    ),
    "npz without arrays": (".npz", npz(), "needs an array 'points'"),
    "npz of text": (".npz", npz(("points.npy", b"hello")), "not a NumPy"),
}  # fmt: skip


@pytest.mark.parametrize("case", CORPUS)
def test_refused_in_one_line_and_little_memory(tmp_path: Path, refuse: Refuse, case: str) -> None:
    suffix, content, message = CORPUS[case]
    refuse(tmp_path / f"hostile{suffix}", content, message)


def test_archives_cannot_lie_about_their_size(tmp_path: Path, little_memory: LittleMemory) -> None:
    content = bytearray(npz(("points.npy", npy_of("(1, 3)", body=bytes(24)))))
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", 2**32 - 2)  # uncompressed size, central entry
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with little_memory(), pytest.raises(FileFormatError, match="claims 4294967294 bytes"):
        read(path)


def test_archives_that_end_early_are_refused(tmp_path: Path) -> None:
    array = npy_of("(4, 3)", body=bytes(24))
    content = bytearray(npz(("points.npy", array)))
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", len(array) + 72)  # as if all 96 bytes were there
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="ends after 24 of 96 bytes"):
        read(path)


def samples() -> dict[str, bytes]:
    """One good file of every kind."""
    rng = np.random.default_rng(0)
    lists = "property list uchar short a\n"
    rows = b"".join(POINTS[i * 12 : i * 12 + 12] + struct.pack("<B2h", 2, 1, 2) for i in (0, 1))
    records = np.zeros(3, dtype=[("x", "f4"), ("t", "i4"), ("y", "f8"), ("z", "f8")])
    saved, packed = io.BytesIO(), io.BytesIO()
    np.save(saved, records)
    np.savez_compressed(packed, points=rng.random((4, 3)), label=np.arange(4))
    return {
        "a.ply": ply("ascii", FACES, b"1 2 3\n4 5 6\n3 0 1 1\n2 0 1\n0\n"),
        "b.ply": ply(LITTLE, FACES, POINTS + triangles("<", [3, 3, 3])),
        "c.ply": ply(BIG, FACES, POINTS + triangles(">", [3, 0, 4])),
        "d.ply": ply(LITTLE, lists, rows),
        "e.ply": ply("ascii", lists, b"1 2 3 1 4\n1 2 3 0\n"),
        "a.csv": b"# made by hand\nx,y,z,label\n1,2,3,4\n5,6,7,8.5\n",
        "a.xyz": b"1 2 3\n4 5 6\n",
        "a.npy": saved.getvalue(),
        "a.npz": packed.getvalue(),
    }


SAMPLES = samples()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_good(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(SAMPLES[name])
    assert len(read(tmp_path / name)) >= 2


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
@quick
def test_damaged_files_are_read_or_refused(
    tmp_path: Path, damaged: Damage, read_or_refuse: ReadOrRefuse, name: str, data: st.DataObject
) -> None:
    path = tmp_path / name
    cloud = read_or_refuse(path, damaged(data, SAMPLES[name]))
    if cloud is not None:
        back = tmp_path / f"back{path.suffix}"
        write(cloud, back)
        assert np.array_equal(read(back).positions, cloud.positions, equal_nan=True)


@pytest.mark.parametrize("name", [n for n in SAMPLES if n[-3:] in ("ply", "npy", "npz")])
def test_every_truncation_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    whole = SAMPLES[name]
    # The last line feed of a text may be missing, and so may digits nobody can know of.
    spare = 1 if b"ascii" in whole else 0
    for size in range(len(whole) - spare):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError):
            read(path)


def test_big_clean_files_are_not_taken_for_hostile(tmp_path: Path) -> None:
    zeros: Any = PointCloud(np.zeros((300_000, 3)))
    np.savez_compressed(tmp_path / "zeros.npz", points=zeros.positions)
    assert len(read(tmp_path / "zeros.npz")) == 300_000

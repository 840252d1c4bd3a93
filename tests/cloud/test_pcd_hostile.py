"""Room `cloud`: damaged and lying PCD files are refused in one line, in little memory."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud.files import read, write
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import Damage, ReadOrRefuse, Refuse

ENCODINGS = ["ascii", "binary", "binary_compressed"]
quick = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def pcd(encoding: str, fields: list[str], count: int) -> bytes:
    """Write `count` equal points; a field is its name, type, size, COUNT and value."""
    split = [field.split() for field in fields]
    names, kinds, sizes, counts, values = (" ".join(column) for column in zip(*split))
    head = (
        f"VERSION 0.7\nFIELDS {names}\nSIZE {sizes}\nTYPE {kinds}\nCOUNT {counts}\nWIDTH {count}\n"
        f"HEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {count}\nDATA {encoding}\n"
    )
    words = [v for v, n in zip(values.split(), counts.split()) for _ in range(int(n))]
    if encoding == "ascii":
        return (head + f"{' '.join(words)}\n" * count).encode()
    columns = [
        np.full(int(n), float(value)).astype(f"<{kind.lower()}{size}").tobytes()
        for _, kind, size, n, value in split
    ]
    if encoding == "binary":
        return head.encode() + b"".join(columns) * count
    body = b"".join(column * count for column in columns)
    runs = [body[i : i + 32] for i in range(0, len(body), 32)]
    packed = b"".join(bytes([len(run) - 1]) + run for run in runs)  # bytes as they are
    return head.encode() + struct.pack("<II", len(packed), len(body)) + packed


XYZ = ["x F 4 1 0.1", "y F 4 1 22.5", "z F 4 1 3.25"]
MORE = [*XYZ, "rgb F 4 1 7", "_ U 1 2 9", "t U 8 1 5"]


BINARY = pcd("binary", XYZ, 4)
ASCII = pcd("ascii", XYZ, 4)
PACKED = pcd("binary_compressed", XYZ, 4)
TRILLION = str(10**12).encode()
BODY = PACKED.index(b"compressed\n") + len(b"compressed\n")


def counted(content: bytes, count: bytes) -> bytes:
    return content.replace(b"WIDTH 4", b"WIDTH " + count).replace(b"POINTS 4", b"POINTS " + count)


def sized(packed: int, size: int, body: bytes = PACKED[BODY + 8 :]) -> bytes:
    return PACKED[:BODY] + struct.pack("<II", packed, size) + body


def row_of(kind: str, word: str) -> bytes:
    letter, size = kind.split()
    types = f"SIZE 4 4 4 {size}\nTYPE F F F {letter}\n"
    return f"FIELDS x y z a\n{types}POINTS 1\nDATA ascii\n1 2 3 {word}\n".encode()


HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no DATA line"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(100), "line 1 is not understood"),
    "no data line": (BINARY[: BINARY.index(b"DATA")], "no DATA line"),
    "endless header": ((b"# " + b"a" * 9_000 + b"\n") * 40, "longer than"),
    "endless line": (b"# " + b"a" * 3_000_000, "longer than|no DATA"),
    "old Mac": (ASCII.replace(b"\n", b"\r"), "PCD"),
    "unknown key": (BINARY.replace(b"VERSION", b"VERSLON"), "line 1 is not understood: 'VERSLON"),
    "key twice": (BINARY.replace(b"HEIGHT 1", b"WIDTH 4"), "two WIDTH lines"),
    "unknown data": (BINARY.replace(b"DATA binary", b"DATA ternary"), "data is 'ternary'"),
    "no fields": (BINARY.replace(b"FIELDS x y z", b"FIELDS"), "names no FIELDS"),
    "fields missing": (BINARY.replace(b"FIELDS x y z\n", b""), "names no FIELDS"),
    "no z": (BINARY.replace(b"FIELDS x y z", b"FIELDS x y w"), "no x, y and z"),
    "field twice": (BINARY.replace(b"FIELDS x y z", b"FIELDS x y y"), "'y' twice"),
    "wide x": (
        BINARY.replace(b"COUNT 1 1 1", b"COUNT 2 1 1") + bytes(16),
        "no x, y and z",
    ),
    "unprintable name": (pcd("binary", [*XYZ, "\x07 U 1 1 1"], 4), "print"),
    "too few sizes": (BINARY.replace(b"SIZE 4 4 4", b"SIZE 4 4"), "3 FIELDS but 2 in SIZE"),
    "too many types": (BINARY.replace(b"TYPE F", b"TYPE F F"), "3 FIELDS but 4 in TYPE"),
    "unknown type": (BINARY.replace(b"TYPE F", b"TYPE Q"), "'x' has no type that exists: Q 4"),
    "float of 2 bytes": (BINARY.replace(b"SIZE 4", b"SIZE 2"), "no type that exists: F 2"),
    "count of nothing": (BINARY.replace(b"COUNT 1", b"COUNT 0"), "COUNT 0"),
    "negative count": (BINARY.replace(b"COUNT 1", b"COUNT -1"), "'-1' in its COUNT"),
    "huge count": (BINARY.replace(b"COUNT 1", b"COUNT " + TRILLION), "more than 65536 bytes"),
    "wordy width": (BINARY.replace(b"WIDTH 4", b"WIDTH four"), "'four' in its WIDTH"),
    "two widths": (BINARY.replace(b"WIDTH 4", b"WIDTH 4 4"), "one number in its WIDTH"),
    "fullwidth width": (BINARY.replace(b"WIDTH 4", "WIDTH ４".encode()), "in its WIDTH"),
    "long width": (BINARY.replace(b"WIDTH 4", b"WIDTH " + b"9" * 5000), "'9999"),
    "no counts": (BINARY.replace(b"WIDTH 4\n", b"").replace(b"POINTS 4\n", b""), "neither WIDTH"),
    "counts differ": (BINARY.replace(b"POINTS 4", b"POINTS 5"), "5 POINTS but WIDTH 4"),
    "short viewpoint": (BINARY.replace(b" 1 0 0 0\nP", b"\nP"), "7 numbers in its VIEWPOINT"),
    "wordy viewpoint": (BINARY.replace(b"VIEWPOINT 0", b"VIEWPOINT a"), "7 numbers"),
    "cut binary": (BINARY[:-1], "at least 48 bytes, but 47 follow"),
    "huge binary": (counted(BINARY, TRILLION), "cut off or its header is wrong"),
    "huge ascii": (counted(ASCII, TRILLION), "cut off or its header is wrong"),
    "huge packed": (counted(PACKED, TRILLION), "cut off or its header is wrong"),
    "too many binary": (BINARY + b"\x01" * 12, "12 bytes after the points"),
    "one row less": (counted(BINARY, b"3"), "12 bytes after the points"),
    "too many ascii": (ASCII + b"1 2 3\n", "declares 4 points, 5 rows follow"),
    "cut ascii": (ASCII[: ASCII.rindex(b"\n", 0, -1) + 1], "declares 4 points, 3 rows follow"),
    "cut ascii row": (ASCII[: ASCII.rindex(b" ")], "point 4 has 2 values where 3"),
    "word in ascii": (ASCII[: ASCII.rindex(b" ")] + b" tree\n", "point 4 has 'tree'"),
    "strange blank": (ASCII[: ASCII.rindex(b"\n", 0, -1)] + b"\n\x85\n", "point 4 has 0 values"),
    "only strange blanks": (
        ASCII[: ASCII.index(b"ascii\n") + 6] + b"\x85\n" * 4 + b" " * 99,
        "point 1 has 0 values",
    ),
    "U 1 of 300": (row_of("U 1", "300"), "'a' has 300.0, which is no U of 1 bytes"),
    "I 2 of 1.5": (row_of("I 2", "1.5"), "'a' has 1.5, which is no I of 2"),
    "U 4 of -1": (row_of("U 4", "-1"), "'a' has -1.0"),
    "I 4 of nan": (row_of("I 4", "nan"), "'a' has nan"),
    "I 8 of 1.5": (row_of("I 8", "1.5"), "PCD file: "),
    "U 8 of -1": (row_of("U 8", "-1"), "PCD file: "),
    "I 8 of 2**63": (row_of("I 8", str(2**63)), "PCD file: "),
    "no sizes": (PACKED[: BODY + 7], "ends before its compressed data|cut off"),
    "cut packed": (PACKED[:-1], "50 compressed bytes, but 49 follow"),
    "wrong size": (sized(50, 49), "49 bytes packed into 50, 4 points need 48"),
    "huge size": (sized(50, 2**32 - 1), "4294967295 bytes packed into 50"),
    "packed too well": (counted(sized(9, 12 * 400, bytes(99)), b"400"), "packed into 9, 400"),
    "trailing packed": (PACKED + b"more", "4 bytes after the points"),
    "damaged packed": (sized(50, 48, b"\xff" * 50), "compressed data is damaged"),
    "packed too short": (sized(26, 48, PACKED[BODY + 8 :][:33] + bytes(17)), "damaged|after the"),
    "packed too long": (sized(51, 48, PACKED[BODY + 8 :-1] + b"\x00\x00"), "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_refused_in_one_line_and_little_memory(tmp_path: Path, refuse: Refuse, case: str) -> None:
    content, message = HOSTILE[case]
    refuse(tmp_path / "hostile.pcd", content, message)


SAMPLES = {encoding: pcd(encoding, MORE, 3) for encoding in ENCODINGS}


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(data=st.data())
@quick
def test_damaged_files_are_read_or_refused(
    tmp_path: Path,
    damaged: Damage,
    read_or_refuse: ReadOrRefuse,
    encoding: str,
    data: st.DataObject,
) -> None:
    path = tmp_path / "damaged.pcd"
    cloud = read_or_refuse(path, damaged(data, SAMPLES[encoding]))
    if cloud is not None:
        write(cloud, path)
        assert np.array_equal(read(path).positions, cloud.positions, equal_nan=True)


@given(st.binary(max_size=200), st.sampled_from([0, 60, BODY, BODY + 8]))
@quick
def test_random_bytes_are_refused_or_read(tmp_path: Path, tail: bytes, kept: int) -> None:
    path = tmp_path / "random.pcd"
    path.write_bytes(PACKED[:kept] + tail)
    with contextlib.suppress(FileFormatError):
        assert len(read(path)) == 4


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_truncation_is_refused(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "cut.pcd"
    whole = SAMPLES[encoding]
    # The last line feed of a text may be missing.
    for size in range(len(whole) - (encoding == "ascii")):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError):
            read(path)

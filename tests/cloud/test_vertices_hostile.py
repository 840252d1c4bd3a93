"""Room `cloud`: damaged and lying meshes are refused in one line, in little memory."""

from __future__ import annotations

import contextlib
import struct
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import Damage, ReadOrRefuse, Refuse

quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
STL_TEXT = Path(__file__).with_name("two_triangles.stl").read_text()
OBJ = b"""# Stra\xdfe 7
v 0 0 0.50 1.0 0.0 0.25
v  1.000 0 -0  0.5 0.5 0.5 # the corner
vn 0 0 1
\tv 1e0 1.10 nan 0 0 1
f 1//1 2//1 3//1
"""
COFF = b"""COFF # colours
3 1 0

0 0 0 255 0 0 7
1.50 0 0  0 255 0 8 # x
0 1 0 0 0 255 9
3 0 1 2 0.5 0.5 0.5
"""
FACET = struct.pack("<12fH", 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0xABCD)
STL = b"solid?".ljust(80, b"\x07") + struct.pack("<I", 2) + FACET * 2


def read_mesh(folder: Path, content: bytes, suffix: str) -> PointCloud:
    path = folder / f"mesh{suffix}"
    path.write_bytes(content)
    return read(path)


def off(counts: str, rows: str = "1 2 3\n4 5 6\n3 0 1 1\n") -> bytes:
    return f"OFF\n{counts}\n{rows}".encode()


TRILLION = 10**12

HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "empty obj": (".obj", b"", "no vertices"),
    "empty off": (".off", b"", "not an OFF file"),
    "empty stl": (".stl", b"", "not an STL file"),
    "png obj": (".obj", b"\x89PNG\r\n\x1a\n" + bytes(100), "binary"),
    "png off": (".off", b"\x89PNG\r\n\x1a\n" + bytes(100), "not an OFF file"),
    "png stl": (".stl", b"\x89PNG\r\n\x1a\n" + b"\x01" * 100, "facets, .* but has 108"),
    "obj without vertices": (".obj", b"vn 0 0 1\nf 1 2 3\n", "no vertices"),
    "obj old Mac": (".obj", b"v 1 2 3\rv 4 5 6\r", "old Mac"),
    "obj short": (".obj", b"# a\nv 1 2 3\nv 4 5\n", "line 3 has 2 values where 3"),
    "obj nothing": (".obj", b"v 1 2 3\nv  # a\n", "line 2 has 0 values"),
    "obj only nothing": (".obj", b"v \nv \n", "line 1 has 0 values"),
    "obj word": (".obj", b"v 1 2 3\n\nv 4 tree 6\n", "line 3 has 'tree'"),
    "obj late word": (".obj", b"v 1 2 3\nv 4 5 6 tree\n", "line 2 has 'tree'"),
    "obj continued": (".obj", b"v 1 2 \\\n3\nv 4 5 6\n", "line 1 has "),
    "obj comma": (".obj", b"v 1,5 2 3\n", "decimals with a point"),
    "obj latin": (".obj", b"v 1 2 3\nv 4 5 \xdf\n", "line 2 has"),
    "obj underscore": (".obj", b"v 1 2 1_0\n", "line 1 has '1_0'"),
    "off word": (".off", b"COW\n1 0 0\n1 2 3\n", "not an OFF file"),
    "off in four": (".off", b"4OFF\n1 0 0\n1 2 3 4\n", "not three-dimensional"),
    "off in n": (".off", b"nOFF\n5\n1 0 0\n1 2 3 4 5\n", "not three-dimensional"),
    "off binary": (".off", b"OFF BINARY\n" + bytes(100), "binary; save it as text"),
    "off cut early": (".off", b"OFF\n", "numbers of vertices and faces"),
    "off negative": (".off", off("-1 0 0"), "numbers of vertices and faces"),
    "off wordy": (".off", off("many few 0"), "numbers of vertices and faces"),
    "off long": (".off", off("9" * 5000 + " 1 0"), "numbers of vertices and faces"),
    "off huge": (".off", off(f"{TRILLION} 1 0"), "1000000000000 vertices and 1 faces, but has"),
    "off huge faces": (".off", off(f"2 {TRILLION} 0"), "it is cut off"),
    "off too few": (".off", off("3 1 0"), "3 vertices and 1 faces, but 3 rows follow|has 3 rows"),
    "off too many": (".off", off("1 1 0"), "1 vertices and 1 faces, but 3 rows follow"),
    "off cut face": (".off", off("2 1 0", "1 2 3\n4 5 6\n3 0 1"), "last face is incomplete"),
    "off wordy face": (".off", off("2 1 0", "1 2 3\n4 5 6\nabc\n"), "last face is incomplete"),
    "off huge face": (".off", off("2 1 0", "1 2 3\n4 5 6\n99999999999 1\n"), "last face is"),
    # Python itself refuses to convert more than 4300 digits, with an error of its own.
    "off longest face": (".off", off("2 1 0", "1 2 3\n4 5 6\n" + "9" * 5000), "last face is"),
    "off short vertex": (".off", off("2 1 0", "1 2 3\n4 5\n3 0 1 1\n"), "line 4 has 2 values"),
    "off word in vertex": (".off", off("2 1 0", "1 2 3\n4 5 tree\n3 0 1 1\n"), "line 4 has 'tree'"),
    "stl header only": (".stl", STL[:83], "shorter than its header"),
    "stl cut": (".stl", STL[:-1], "declares 2 facets, 184 bytes, but has 183"),
    "stl too long": (".stl", STL + bytes(50), "declares 2 facets, 184 bytes, but has 234"),
    "stl huge": (".stl", STL[:80] + b"\xff" * 4 + STL[84:], "4294967295 facets"),
    "stl big-endian": (".stl", STL[:80] + struct.pack(">I", 2) + STL[84:], "33554432 facets"),
    "stl text cut": (".stl", STL_TEXT[:-25].encode(), "does not end with endsolid"),
    "stl text without an end": (".stl", b"solid a\n", "does not end with endsolid"),
    "stl second solid cut": (".stl", STL_TEXT.encode() + b"solid b\n", "end with endsolid"),
    "stl four corners": (
        ".stl",
        STL_TEXT.replace("vertex 0 0 0\n", "vertex 0 0 0\n" * 2).encode(),
        "line 7 is 'vertex' where STL has 'endfacet'",
    ),
    "stl two corners": (
        ".stl",
        STL_TEXT.replace("vertex 1.0 0 0\n", "\n").encode(),
        "line 8 is 'endfacet' where STL has 'vertex'",
    ),
    "stl early end": (
        ".stl",
        STL_TEXT.replace("  endfacet", "  endsolid").encode(),
        "line 8 is 'endsolid' where STL has 'endfacet'",
    ),
    "stl short corner": (".stl", STL_TEXT.replace("1.0 0 0", "1.0 0").encode(), "line 5 has 2"),
    "stl wide corner": (".stl", STL_TEXT.replace("1.0 0 0", "1 0 0 0").encode(), "more than three"),
    "stl word": (".stl", STL_TEXT.replace("1.0 0 0", "1.0 0 tree").encode(), "line 5 has 'tree'"),
    "stl no normal": (".stl", STL_TEXT.replace("0 0.1 0.90", "").encode(), "line 2 has 0 values"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_refused_in_one_line_and_little_memory(tmp_path: Path, refuse: Refuse, case: str) -> None:
    suffix, content, message = HOSTILE[case]
    refuse(tmp_path / f"mesh{suffix}", content, message)


SAMPLES: dict[str, bytes] = {
    "a.obj": OBJ,
    "b.obj": b"v 1 2 3\nv 4 5 6 7\n",
    "a.off": COFF,
    "b.off": off("2 1 0"),
    "a.stl": STL,
    "b.stl": STL_TEXT.encode(),
}


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
@quick
def test_damaged_files_are_read_or_refused(
    tmp_path: Path, damaged: Damage, read_or_refuse: ReadOrRefuse, name: str, data: st.DataObject
) -> None:
    path = tmp_path / name
    content = damaged(data, SAMPLES[name])
    cloud = read_or_refuse(path, content)
    if cloud is not None:
        write(cloud, path)
        assert path.read_bytes() == content
        still = cloud.with_positions(np.where(np.isfinite(cloud.positions), 0.5, np.nan))
        write(still, path)
        assert np.array_equal(read(path).positions, still.positions, equal_nan=True)


@given(st.binary(max_size=200), st.sampled_from([".obj", ".off", ".stl"]), st.booleans())
@quick
def test_random_bytes(tmp_path: Path, content: bytes, suffix: str, begun: bool) -> None:
    start = {".obj": b"v 1 2 ", ".off": b"OFF\n1 0 0\n", ".stl": b"solid\n"}[suffix]
    with contextlib.suppress(FileFormatError):
        assert isinstance(read_mesh(tmp_path, start * begun + content, suffix), PointCloud)


@pytest.mark.parametrize("name", ["b.off", "a.stl", "b.stl"])
def test_every_truncation_is_refused(tmp_path: Path, name: str) -> None:
    whole = SAMPLES[name]
    spare = {"b.off": 1, "a.stl": 0, "b.stl": len("olid two  triangles\n") - 3}[name]
    for size in range(len(whole) - spare):
        with pytest.raises(FileFormatError):
            read_mesh(tmp_path, whole[:size], Path(name).suffix)


def test_refusals_come_without_warnings(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(FileFormatError, match="line 1 has 0 values"):
            read_mesh(tmp_path, b"v \nv \n", ".obj")
    assert caught == []


def test_many_blanks_are_quick(tmp_path: Path) -> None:
    for suffix, content in (
        (".obj", b"v" + b" " * 200_000 + b"\rv" + b"\t" * 200_000 + b"1 2 3"),
        (".off", b"OFF\n1 0 0\n" + b" " * 200_000 + b"\r1 2 3" + b" " * 200_000),
        (".stl", b"solid\nfacet" + b" " * 200_000 + b"\rvertex" + b" " * 200_000 + b"\rx"),
    ):
        with pytest.raises(FileFormatError):
            read_mesh(tmp_path, content, suffix)

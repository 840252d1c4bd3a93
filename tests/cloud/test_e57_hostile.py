"""Room `cloud`: E57 files that are not what they say are refused before they can harm."""

from __future__ import annotations

import importlib
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud import e57
from pointmend.cloud.files import read, write
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import ReadOrRefuse, Refuse

LIB: Any = importlib.import_module("pye57.libe57")
quick = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
COUNT = 30
UTM = (500_123.25, 5_400_321.5, 123.0)
TURNED = (0.9, 0.1, -0.2, 0.3)
# One letter per field: doubles, floats, scaled, whole, one bit.
Fields = dict[str, str]
XYZ = [f"cartesian{axis}" for axis in "XYZ"]
ANGLES = ["sphericalRange", "sphericalAzimuth", "sphericalElevation"]


def make(path: Path, *scans: Fields, rotation: tuple[float, ...] = TURNED) -> bytes:
    """Write an E57 file with libE57's own calls: scans with a pose, and a picture."""
    file = LIB.ImageFile(str(path), "w")
    root = file.root()
    file.extensionsAdd("", LIB.E57_V1_0_URI)
    file.extensionsAdd("vendor", "http://example.org/vendor")
    for name, text in (("formatName", "ASTM E57 3D Imaging Data File"), ("guid", "{a}")):
        root.set(name, LIB.StringNode(file, text))
    root.set("versionMajor", LIB.IntegerNode(file, 1))
    root.set("versionMinor", LIB.IntegerNode(file, 0))
    root.set("vendor:temperature", LIB.FloatNode(file, 20.1))
    blob = LIB.BlobNode(file, 300)
    root.set("vendor:picture", blob)
    blob.write(bytearray(300), 0, 300)
    data = LIB.VectorNode(file, True)
    root.set("data3D", data)
    for fields in scans:
        scan, pose = LIB.StructureNode(file), LIB.StructureNode(file)
        data.append(scan)
        scan.set("pose", pose)
        for name, axes, values in (("rotation", "wxyz", rotation), ("translation", "xyz", UTM)):
            pose.set(name, LIB.StructureNode(file))
            for axis, value in zip(axes, values):
                pose[name].set(axis, LIB.FloatNode(file, value))
        put_points(file, scan, fields)
    file.close()
    return path.read_bytes()


def put_points(file: Any, scan: Any, fields: Fields) -> None:
    rng = np.random.default_rng(0)
    kinds = {
        "d": lambda: LIB.FloatNode(file, 0.0, LIB.E57_DOUBLE),
        "f": lambda: LIB.FloatNode(file, 0.0, LIB.E57_SINGLE),
        "s": lambda: LIB.ScaledIntegerNode(file, 0, -1000, 1000, 0.001, 0.5),
        "i": lambda: LIB.IntegerNode(file, 0, 0, 2),
        "b": lambda: LIB.IntegerNode(file, 0, 0, 1),
    }
    prototype = LIB.StructureNode(file)
    arrays, buffers = [], LIB.VectorSourceDestBuffer()
    for name, kind in fields.items():
        prototype.set(name, kinds[kind]())
        arrays.append(np.empty(COUNT, dtype=kind if kind in "df" else "q"))
        arrays[-1][:] = rng.normal(size=COUNT) if kind in "df" else rng.integers(0, 2, COUNT)
        buffers.append(LIB.SourceDestBuffer(file, name, arrays[-1], COUNT, False, False))
    points = LIB.CompressedVectorNode(file, prototype, LIB.VectorNode(file, True))
    scan.set("points", points)
    writer = points.writer(buffers)
    writer.write(COUNT)
    writer.close()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("good") / "a.e57"
    extras = {"cartesianInvalidState": "i", "intensity": "f", "vendor:id": "i"}
    return {
        "double": make(path, {**dict.fromkeys(XYZ, "d"), **extras}),
        "two": make(path, {**dict.fromkeys(XYZ, "s"), "timeStamp": "s"}, dict.fromkeys(XYZ, "f")),
        "spherical": make(path, {**dict.fromkeys(ANGLES, "s"), "sphericalInvalidState": "b"}),
        "bits": make(path, dict.fromkeys(XYZ, "b")),
    }


CRC = [0] * 256
for _byte in range(256):
    CRC[_byte] = _byte
    for _ in range(8):
        CRC[_byte] = (CRC[_byte] >> 1) ^ (0x82F63B78 if CRC[_byte] & 1 else 0)


def logical(content: bytes) -> bytes:
    return b"".join(content[i : i + 1020] for i in range(0, len(content), 1024))


def sealed(content: bytes) -> bytes:
    """Return logical bytes in pages with checksums, the length in the header made right."""
    pages = [content[i : i + 1020].ljust(1020, b"\0") for i in range(0, len(content), 1020)]
    pages[0] = pages[0][:16] + struct.pack("<Q", 1024 * len(pages)) + pages[0][24:]
    out = b""
    for page in pages:
        crc = 0xFFFFFFFF
        for byte in page:
            crc = CRC[(crc ^ byte) & 255] ^ (crc >> 8)
        out += page + (crc ^ 0xFFFFFFFF).to_bytes(4, "big")
    return out


def xml_place(content: bytes) -> tuple[int, int]:
    start, length = struct.unpack("<QQ", content[24:40])
    return start // 1024 * 1020 + start % 1024, length


def edited(content: bytes, old: bytes, new: bytes) -> bytes:
    """Return the file with its XML changed, and all lengths and checksums made right."""
    start, length = xml_place(content)
    flat = logical(content)
    xml = flat[start : start + length]
    assert old in xml
    xml = xml.replace(old, new)
    return sealed(flat[:32] + struct.pack("<Q", len(xml)) + flat[40:start] + xml)


def patched(content: bytes, at: int, new: bytes) -> bytes:
    flat = logical(content)
    return sealed(flat[:at] + new + flat[at + len(new) :])


def test_sealing_is_what_libe57_does(good: dict[str, bytes]) -> None:
    for content in good.values():
        assert sealed(logical(content)) == content


def test_the_files_are_good(tmp_path: Path, good: dict[str, bytes]) -> None:
    for name, content in good.items():
        (tmp_path / "a.e57").write_bytes(content)
        assert len(read(tmp_path / "a.e57")) == COUNT * (2 if name == "two" else 1)


COUNT_TEXT = f'recordCount="{COUNT}"'.encode()
DEEP = b"<a type='Structure'>" * 90 + b"</a>" * 90
END = b"</e57Root>"
XML_CASES: dict[str, tuple[str, bytes, bytes, str]] = {
    "a trillion": ("double", COUNT_TEXT, b'recordCount="1000000000000"', "declares 1000000"),
    "one too many": ("double", COUNT_TEXT, b'recordCount="31"', "ends before its 31 points"),
    "2**63 points": ("double", COUNT_TEXT, b'recordCount="9223372036854775808"', "whole number"),
    "fewer than none": ("double", COUNT_TEXT, b'recordCount="-1"', "does not say how many"),
    "no count": ("double", COUNT_TEXT, b"", "does not say how many"),
    "far offset": ("double", b'fileOffset="', b'fileOffset="99999999', "where nothing can be"),
    "large picture": ("double", b'length="300"', b'length="99999999"', "pictures larger than"),
    "negative picture": ("double", b'length="300"', b'length="-300"', "pictures larger than"),
    "no scans": ("double", b"data3D", b"data4D", "holds no scans"),
    "no points": ("double", b"points", b"paints", "scan 0 has no points"),
    "no prototype": ("double", b"prototype", b"prototipe", "scan 0 has no points"),
    "no z": ("double", b"cartesianZ", b"cartesianW", "neither x, y and z nor range"),
    "intensity twice": ("double", b"vendor:id", b"intensity", "cannot be read: attempted to set"),
    "real state": ("double", b'State type="Integer"', b'State type="Float" a=""', "no whole"),
    "no scale": ("two", b'scale="', b'scale="0" a="', r"scale 0\.0"),
    "minimum above": ("two", b'minimum="-1000"', b'minimum="2000"', "minimum above its maximum"),
    "odd number": ("two", b'minimum="-1000"', b'minimum="-1e3"', "'-1e3' where a whole number"),
    "odd real": ("two", b'scale="', b'scale="x', "where a number is expected"),
    "infinite pose": ("double", b"5.0012325e+05", b"inf", "whose pose is none"),
    "unknown type": ("two", b'"ScaledInteger"', b'"BigInteger"', "unknown type 'BigInteger'"),
    "no type": ("double", b'<prototype type="Structure"', b"<prototype ", "unknown type ''"),
    "blob per point": ("double", b'intensity type="Float"', b'intensity type="Blob"', "per point"),
    "nested value": ("double", END, b"<a type='Float'><b type='Float'/></a>" + END, "inside a"),
    "deep": ("double", END, DEEP + END, "nested deeper"),
    "entities": ("double", b"<e57Root", b'<!DOCTYPE a [<!ENTITY b "c">]><e57Root', "document type"),
    "schema": ("double", b"<e57Root", b'<e57Root xsi:schemaLocation="http://a b"', "XML schema"),
    "latin": ("double", b'encoding="UTF-8"', b'encoding="latin-1"', "XML in latin-1"),
    "other root": ("double", b"e57Root", b"e58Root", "root 'e58Root'"),
    "cut XML": ("double", END, b"", "damaged XML"),
    "unknown prefix": ("double", b"xmlns:vendor", b"xmlns:vender", "cannot be read: "),
}


@pytest.mark.parametrize("case", XML_CASES)
def test_lying_xml_is_refused(
    tmp_path: Path, refuse: Refuse, good: dict[str, bytes], case: str
) -> None:
    name, old, new, message = XML_CASES[case]
    refuse(tmp_path / "a.e57", edited(good[name], old, new), message)


def test_lying_headers_are_refused(tmp_path: Path, refuse: Refuse, good: dict[str, bytes]) -> None:
    content, path = good["double"], tmp_path / "a.e57"
    start, length = xml_place(content)
    huge = struct.pack("<Q", 2**62)
    for lie, message in {
        b"": "not an E57",
        b"ply\nformat ascii 1.0\n": "not an E57",
        content[:30]: "ends in its header",
        content[:-1]: "cut off",
        content[:-1024]: "cut off",
        content + bytes(1024): "cut off",
        patched(content, 8, b"\2"): r"version is 2\.0",
        patched(content, 40, b"\0\x08"): "pages of 2048",
        patched(content, 24, huge): "where nothing can be",
        patched(content, 24, struct.pack("<Q", 1022)): "where nothing can be",
        patched(content, 32, huge): "more than the file has",
        patched(content, start, b"\xff\xfe"): "damaged XML",
        content[:200] + b"!" + content[201:]: "checksum",
        content[:-4] + b"!!!!": "checksum",
    }.items():
        refuse(path, lie, message)
    assert length > 1000


def test_damaged_packets_are_refused(
    tmp_path: Path, refuse: Refuse, good: dict[str, bytes]
) -> None:
    content, path = good["two"], tmp_path / "a.e57"
    flat = logical(content)
    found = re.search(rb'<points [^>]*fileOffset="([0-9]+)"', flat)
    assert found is not None
    section = int(found[1])
    assert section < 988  # in the first page, where logical is physical
    packet = section + 32
    assert flat[section] == flat[packet] == 1
    for at, new, message in [
        (section, b"\2", "no such section"),
        (section + 8, struct.pack("<Q", 2**60), "no such section"),
        (section + 8, struct.pack("<Q", 40), "no such section"),
        (section + 16, struct.pack("<Q", 2**60), "where nothing can be"),
        (section + 16, struct.pack("<Q", 60), "ends before"),
        (packet, b"\7", "damaged packet"),
        (packet, b"\2", "ends before|damaged"),
        (packet + 2, b"\0\0", "damaged packet"),
        (packet + 2, b"\xff\xff", "damaged packet"),
        (packet + 2, b"\3\0", "damaged packet"),
        (packet + 4, b"\1\0", "damaged packet"),
        (packet + 6, b"\xff\xff", "damaged packet"),
    ]:
        refuse(path, patched(content, at, new), message)


def test_scans_that_share_their_bytes_cannot_be_many(
    tmp_path: Path, refuse: Refuse, good: dict[str, bytes]
) -> None:
    constant = edited(good["bits"], b'maximum="1"', b'maximum="0"')
    constant = edited(constant, COUNT_TEXT, b'recordCount="50000"')
    start, length = xml_place(constant)
    xml = logical(constant)[start : start + length]
    scan = xml[xml.index(b"<vectorChild") : xml.index(b"</data3D>")]
    lie = edited(constant, b"</data3D>", scan * 9 + b"</data3D>")
    refuse(tmp_path / "a.e57", lie, "declares 500000 points, which would take")


def test_points_that_take_no_bytes_cannot_be_many(
    tmp_path: Path, refuse: Refuse, good: dict[str, bytes]
) -> None:
    constant = edited(good["bits"], b'maximum="1"', b'maximum="0"')
    path = tmp_path / "a.e57"
    path.write_bytes(edited(constant, COUNT_TEXT, b'recordCount="50000"'))
    assert len(read(path)) == 50_000
    many = edited(constant, COUNT_TEXT, b'recordCount="1000000000000"')
    refuse(path, many, "declares 1000000000000 points, which would take")


@pytest.mark.parametrize(
    "kind",
    [b'type="String"/>', b'type="Structure"><a type="Float" precision="single"/></intensity>'],
    ids=["text", "structure"],
)
def test_what_is_no_plain_number_is_left_out(
    tmp_path: Path, good: dict[str, bytes], kind: bytes
) -> None:
    path = tmp_path / "a.e57"
    path.write_bytes(good["double"])
    whole = read(path)
    plain = b'<intensity type="Float" precision="single"/>'
    path.write_bytes(edited(good["double"], plain, b"<intensity " + kind))
    cloud = read(path)
    assert list(cloud.attributes) == ["cartesianInvalidState", "vendor:id"]
    assert np.array_equal(cloud.positions, whole.positions, equal_nan=True)
    assert np.array_equal(cloud.attributes["vendor:id"], whole.attributes["vendor:id"])
    assert e57.losses(cloud) == ("field 'intensity'",)
    write(cloud, path)


def test_a_rotation_of_no_length_is_refused(tmp_path: Path, refuse: Refuse) -> None:
    path = tmp_path / "a.e57"
    content = make(path, dict.fromkeys(XYZ, "d"), rotation=(0.0, 0.0, 0.0, 0.0))
    refuse(path, content, "whose pose is none")


@pytest.mark.parametrize("name", ["double", "two", "spherical", "bits"])
@given(data=st.data())
@quick
def test_damaged_files_are_read_or_refused(
    tmp_path: Path,
    read_or_refuse: ReadOrRefuse,
    good: dict[str, bytes],
    name: str,
    data: st.DataObject,
) -> None:
    """Nothing but FileFormatError comes out of a file, whether its checksums are right or not."""
    content = bytearray(logical(good[name]))
    start, length = xml_place(good[name])
    for _ in range(data.draw(st.integers(1, 3))):
        first, last = data.draw(st.sampled_from([(0, 48), (48, start), (start, start + length)]))
        at = data.draw(st.integers(first, last - 1))
        content[at] = data.draw(st.integers(0, 255) | st.sampled_from(b"0919-"))
    whole = sealed(bytes(content))
    if data.draw(st.booleans()):
        whole = whole[: data.draw(st.integers(0, len(whole)))]
    cloud = read_or_refuse(tmp_path / "a.e57", whole, reader=e57.read)
    if cloud is not None:
        write(cloud, tmp_path / "b.e57")
        assert np.array_equal(read(tmp_path / "b.e57").positions, cloud.positions, equal_nan=True)


@given(st.binary(max_size=200))
@quick
def test_random_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.e57"
    for start in (b"", b"ASTM-E57", b"ASTM-E57\1\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0"):
        path.write_bytes((start + content).ljust(1024, b"\0"))
        with pytest.raises(FileFormatError):
            e57.read(path)

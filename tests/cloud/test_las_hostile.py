"""Room `cloud`: damaged and lying LAS and LAZ files are refused in one line, in little memory."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import laspy  # type: ignore[import-untyped]
import lazrs  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud import las
from pointmend.cloud.files import read, write
from pointmend.cloud.las_laz import explained
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import LittleMemory, ReadOrRefuse, Refuse

quick = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TRILLION = 10**12
LITTLE = 24 << 20  # of memory
POINTS_AT, RECORDS, FORMAT, LENGTH, OLD_COUNT, SCALE, OFFSET = 96, 100, 104, 105, 107, 131, 155
WAVEFORMS_AT, EXTENDED_AT, EXTENDED, COUNT = 227, 235, 243, 247


def sample(suffix: str, point_format: int, count: int = 20, version: str = "1.4") -> bytes:
    """Have laspy write a good file."""
    header = laspy.LasHeader(version=version, point_format=point_format)
    header.scales = [0.01, 0.01, 0.01]
    header.add_extra_dim(laspy.ExtraBytesParams(name="a", type="u2"))
    header.add_extra_dim(laspy.ExtraBytesParams(name="b", type="3f4"))
    header.vlrs.append(laspy.VLR("someone", 12, "", b"anything"))
    good = laspy.LasData(header)
    rng = np.random.default_rng(0)
    good.x, good.y, good.z = np.cumsum(rng.normal(size=(3, count)), axis=1)
    good.intensity = rng.integers(0, 99, count)
    if version == "1.4":
        good.evlrs = laspy.vlrs.vlrlist.VLRList([laspy.VLR("later", 9, "", b"abc")])
    file = io.BytesIO()
    good.write(file, do_compress=suffix == ".laz")
    return file.getvalue()


SAMPLES = {
    f"{kind}{suffix}": sample(suffix, point_format)
    for suffix in (".las", ".laz")
    for kind, point_format in (("old", 5), ("new", 7))
}
OLD, NEW, OLD_Z, NEW_Z = SAMPLES.values()
RECORD = 36 + 14  # bytes of a point of NEW


def patched(content: bytes, place: int, code: str, *values: float) -> bytes:
    raw = bytearray(content)
    struct.pack_into("<" + code, raw, place, *values)
    return bytes(raw)


def number(content: bytes, place: int, code: str) -> int:
    return int(struct.unpack_from("<" + code, content, place)[0])


def laszip(content: bytes, place: int, code: str, *values: int) -> bytes:
    """Change the record of the compression."""
    return patched(content, content.index(b"laszip encoded") + 52 + place, code, *values)


def layer(content: bytes, size: int) -> bytes:
    """Change the size of the first layer of the first chunk."""
    return patched(content, number(content, POINTS_AT, "I") + 8 + RECORD + 4, "I", size)


def table(content: bytes, place: int, value: int) -> bytes:
    """Change the head of the chunk table."""
    at = number(content, number(content, POINTS_AT, "I"), "q")
    return patched(content, at + place, "I", value)


def lengths(content: bytes, length: int) -> bytes:
    """Change the length of the only chunk; nothing behind the table is kept."""
    record = content.index(b"laszip encoded") + 52
    file = io.BytesIO()
    lazrs.write_chunk_table(file, [(50000, length)], lazrs.LazVlr(content[record : record + 100]))
    at = number(content, number(content, POINTS_AT, "I"), "q")
    return patched(content[:at] + file.getvalue(), EXTENDED_AT, "QI", 0, 0)


def wide(extra: int) -> bytes:
    """Compress a point with so many extra bytes."""
    vlr = lazrs.LazVlr.new_for_compression(0, extra)
    file = io.BytesIO()
    file.write(OLD[:375])
    data = vlr.record_data()
    file.write(struct.pack("<H16sHH32s", 0, b"laszip encoded", 22204, len(data), b"") + data)
    start = file.tell()
    compressor = lazrs.LasZipCompressor(file, vlr)
    compressor.compress_many(bytes(20 + extra))
    compressor.done()
    content = patched(file.getvalue(), POINTS_AT, "2IBHI", start, 1, 0x80, 20 + extra, 1)
    return patched(content, EXTENDED_AT, "QIQ", 0, 0, 1)


SPACE = 1 << 24
CORPUS: dict[str, tuple[str, bytes, str]] = {
    "empty": (".las", b"", "not a LAS or LAZ file"),
    "png": (".laz", b"\x89PNG\r\n\x1a\n" + bytes(400), "not a LAS or LAZ file"),
    "only the magic": (".las", b"LASF", "ends after 4 bytes"),
    "cut header": (".las", NEW[:300], "cut off"),
    "zeros": (".las", b"LASF" + bytes(1000), "is LAS 0.0"),
    "version": (".las", patched(NEW, 25, "B", 5), "is LAS 1.5; 1.0 to 1.4 are"),
    "short header": (".las", patched(NEW, 94, "H", 227), "claims to have 227 bytes"),
    "long header": (".las", patched(NEW, 94, "H", 65535), "cut off"),
    "points in header": (".las", patched(NEW, POINTS_AT, "I", 300), "inside itself"),
    "points behind the end": (".las", patched(NEW, POINTS_AT, "I", 2**32 - 1), "before its points"),
    "point format": (".las", patched(NEW, FORMAT, "B", 11), "format 11; 0 to 10"),
    "both compression bits": (".laz", patched(NEW_Z, FORMAT, "B", 0xC7), "format 199"),
    "short records": (".las", patched(NEW, LENGTH, "H", 20), "format 7 needs 16 more"),
    "no scale": (".las", patched(NEW, SCALE, "3d", 0.1, 0.0, 0.1), "scale 0 .* in y make no"),
    "negative scale": (".las", patched(NEW, SCALE, "d", -0.1), "in x make no sense"),
    "nan scale": (".las", patched(NEW, SCALE, "d", np.nan), "in x make no sense"),
    "huge scale": (".las", patched(NEW, SCALE, "d", 1e300), "in x make no sense"),
    "infinite offset": (".las", patched(NEW, OFFSET, "d", np.inf), "in x make no sense"),
    "offset a bit too far": (".las", patched(NEW, OFFSET, "d", 2.0**47), "in x make no sense"),
    "offset too far": (".las", patched(NEW, OFFSET, "d", 1e16), "1e.16 in x make no sense"),
    "a record too many": (".las", patched(NEW, RECORDS, "I", 3), "record 3 of 3 does not fit"),
    "huge records": (".las", patched(NEW, RECORDS, "I", 2**32 - 1), "declares 4294967295 variable"),
    "long record": (".las", patched(NEW, 375 + 20, "H", 65535), "record 1 of 2 does not fit"),
    "space before points": (
        ".las",
        patched(NEW[:375] + bytes(SPACE + 99), POINTS_AT, "2I", 375 + SPACE + 9, 0),
        "bytes empty before the points",
    ),
    "huge count": (".las", patched(NEW, COUNT, "Q", TRILLION), "points: 50000000000000 bytes, but"),
    "overflowing count": (".las", patched(NEW, COUNT, "Q", 2**64 - 1), "cut off or its header"),
    "small count": (".las", patched(NEW, COUNT, "Q", 19), "50 bytes after the 19 points"),
    "old huge count": (".las", patched(OLD, COUNT, "Q", 2**40), "cut off or its header is wrong"),
    "waves too soon": (
        ".las",
        patched(NEW, WAVEFORMS_AT, "Q", number(NEW, POINTS_AT, "I") + 70),
        "1000 bytes, but 70 follow",
    ),
    "huge extended": (".las", patched(NEW, EXTENDED, "I", 2**32 - 1), "4294967295 extended"),
    "extended too soon": (".las", patched(NEW, EXTENDED_AT, "Q", 4), "records from byte 4"),
    "extended too late": (".las", patched(NEW, EXTENDED_AT, "Q", 2**63), "cut off or its header"),
    "long extended": (
        ".las", patched(NEW, len(NEW) - 63 + 20, "Q", 2**64 - 1), "extended record 1 of 1 is cut",
    ),
    "LAZ huge count": (".laz", patched(NEW_Z, COUNT, "Q", TRILLION), "1000000000000 points in"),
    "LAZ large count": (".laz", patched(NEW_Z, COUNT, "Q", 50001), "chunks hold up to 50000"),
    "LAZ no count": (".laz", patched(patched(OLD_Z, COUNT, "Q", 0), OLD_COUNT, "I", 0), "chunks"),
    "LAZ without record": (".laz", NEW_Z.replace(b"laszip enc", b"laszip dec"), "no record"),
    "LAZ other format": (".laz", patched(NEW_Z, FORMAT, "B", 0x86), "does not fit point format 6"),
    "LAZ compressor": (".laz", laszip(NEW_Z, 0, "H", 0), "compressor 0 with coder 0"),
    "LAZ coder": (".laz", laszip(NEW_Z, 2, "H", 1), "compressor 3 with coder 1"),
    "LAZ wrong compressor": (".laz", laszip(NEW_Z, 0, "H", 2), "has items of version 3"),
    "LAZ no chunks": (".laz", laszip(NEW_Z, 12, "I", 0), "compressor 3"),
    "LAZ no items": (".laz", laszip(NEW_Z, 32, "H", 0), "does not fit point format 7"),
    "LAZ many items": (".laz", laszip(NEW_Z, 32, "H", 65535), "does not fit point format 7"),
    "LAZ item size": (".laz", laszip(NEW_Z, 36, "H", 31), "does not fit point format 7"),
    "LAZ item version": (".laz", laszip(NEW_Z, 38, "H", 9), "points are damaged: Item Point14"),
    "LAZ short record": (
        ".laz", NEW_Z.replace(b"\x34\x00http://laszip", b"\x20\x00http://laszip"), "record",
    ),
    "LAZ table gone": (
        ".laz", patched(NEW_Z, number(NEW_Z, POINTS_AT, "I"), "q", -1), "no table|should be at",
    ),
    "LAZ table far": (
        ".laz", patched(NEW_Z, number(NEW_Z, POINTS_AT, "I"), "q", 2**62), "should be at byte 46",
    ),
    "LAZ table near": (
        ".laz",
        patched(NEW_Z, number(NEW_Z, POINTS_AT, "I"), "q", number(NEW_Z, POINTS_AT, "I") + 1),
        "should be at",
    ),
    "LAZ table version": (".laz", table(NEW_Z, 0, 1), "chunks in"),
    "LAZ huge table": (".laz", table(NEW_Z, 4, 2**32 - 1), "declares 4294967295 chunks"),
    "LAZ empty table": (".laz", table(NEW_Z, 4, 0), "its 0 chunks hold up to 0"),
    "LAZ huge layer": (".laz", layer(NEW_Z, 2**32 - 1), "chunk 1 of 1 is damaged"),
    "LAZ long chunk": (".laz", lengths(OLD_Z, 10**6), "longer than the file"),
    "LAZ long new chunk": (".laz", lengths(NEW_Z, 10**6), "longer than the file"),
    "LAZ negative chunk": (".laz", lengths(NEW_Z, 2**32 - 9), "longer than the file"),
    "LAZ wide points": (".laz", wide(9000), "9000 extra bytes take too much memory"),
    "LAZ nothing": (".laz", NEW_Z[: number(NEW_Z, POINTS_AT, "I")], "cut off"),
}  # fmt: skip


@pytest.mark.parametrize("case", CORPUS)
def test_refused_in_one_line_and_little_memory(tmp_path: Path, refuse: Refuse, case: str) -> None:
    suffix, content, message = CORPUS[case]
    path = tmp_path / f"hostile{suffix}"
    refuse(path, content, message, LITTLE)
    with pytest.raises(FileFormatError), las.open_(path) as reader:
        next(reader.pieces(1))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_good(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(SAMPLES[name])
    assert len(read(tmp_path / name)) == 20


def cuts(whole: bytes) -> list[int]:
    """Return where to cut a file: often, and everywhere near its end."""
    return [*range(0, len(whole) - 40, 23), *range(len(whole) - 40, len(whole))]


@pytest.mark.parametrize("name", SAMPLES)
def test_no_truncation_goes_unnoticed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for size in cuts(SAMPLES[name]):
        path.write_bytes(SAMPLES[name][:size])
        with pytest.raises(FileFormatError):
            las.read(path)


@pytest.mark.parametrize(("suffix", "point_format"), [(".las", 3), (".laz", 3)])
def test_truncated_points_are_noticed(tmp_path: Path, suffix: str, point_format: int) -> None:
    """Without extended records, points or the table of chunks are the last in a file."""
    whole = sample(suffix, point_format, version="1.2")
    path = tmp_path / f"a{suffix}"
    path.write_bytes(whole)
    good = las.read(path)
    for size in cuts(whole):
        path.write_bytes(whole[:size])
        try:
            found = las.read(path)
        except FileFormatError:
            continue
        # The end of the table of chunks is padding.
        assert suffix == ".laz"
        assert size > len(whole) - 4
        assert np.array_equal(found.positions, good.positions)


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
@quick
def test_damaged_files_are_read_or_refused(
    tmp_path: Path, read_or_refuse: ReadOrRefuse, name: str, data: st.DataObject
) -> None:
    content = bytearray(SAMPLES[name])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        gone = data.draw(st.sampled_from([0, 1, 1, 1, 4]))
        content[at : at + gone] = data.draw(
            st.binary(min_size=gone, max_size=gone)
            | st.sampled_from([b"\xff" * 4, bytes(4), b"\0\0\0\x80", b""])
        )
    path = tmp_path / name
    cloud = read_or_refuse(path, bytes(content), LITTLE)
    if cloud is not None:
        back = tmp_path / f"back{path.suffix}"
        write(cloud, back)
        assert np.array_equal(read(back).positions, cloud.positions)


@given(st.binary(max_size=600), st.sampled_from([".las", ".laz"]), st.booleans())
@quick
def test_random_bytes(tmp_path: Path, content: bytes, suffix: str, has_magic: bool) -> None:
    start = b"LASF" + NEW[4:26] if has_magic else b""
    (tmp_path / f"a{suffix}").write_bytes(start + content)
    with pytest.raises(FileFormatError):
        read(tmp_path / f"a{suffix}")


def test_equal_points_are_not_taken_for_hostile(
    tmp_path: Path, little_memory: LittleMemory
) -> None:
    good = laspy.LasData(laspy.LasHeader(point_format=6))
    good.x = good.y = good.z = np.zeros(300_000)
    good.write(tmp_path / "a.laz")
    assert (tmp_path / "a.laz").stat().st_size < 6000
    assert len(read(tmp_path / "a.laz")) == 300_000
    with little_memory(LITTLE), las.open_(tmp_path / "a.laz") as reader:
        assert sum(len(piece) for piece in reader.pieces(10_000)) == 300_000


def test_lying_chunks_of_any_size(tmp_path: Path) -> None:
    """Chunks say how many points they have; together they must have what the header says."""
    path = tmp_path / "a.laz"
    header_and_more = sample(".las", 6)
    at = number(header_and_more, POINTS_AT, "I")
    vlr = lazrs.LazVlr.new_for_compression(6, 14, True)
    record = struct.pack("<H16sHH32s", 0, b"laszip encoded", 22204, len(vlr.record_data()), b"")
    for chunks, message in (
        ((12, 8), ""),
        ((12, 7), "its 2 chunks hold 19;"),
        ((12, 9), "its 2 chunks hold 21;"),
    ):
        file = io.BytesIO()
        file.write(header_and_more[:at] + record + vlr.record_data())
        places = file.tell()
        compressor = lazrs.LasZipCompressor(file, vlr)
        compressor.compress_chunks([bytes(44 * points) for points in chunks])
        compressor.done()
        content = patched(file.getvalue(), POINTS_AT, "2I", places, 3)
        content = patched(patched(content, FORMAT, "B", 0x86), EXTENDED_AT, "QI", 0, 0)
        path.write_bytes(content)
        if message:
            with pytest.raises(FileFormatError, match=message):
                read(path)
        else:
            assert len(read(path)) == 20


def test_points_in_a_single_chunk(tmp_path: Path) -> None:
    """The first LAZ files had neither chunks nor a table of them."""
    (tmp_path / "new.laz").write_bytes(OLD_Z)
    at = number(OLD_Z, POINTS_AT, "I")
    points = OLD_Z[at + 8 : number(OLD_Z, at, "q")]
    content = patched(laszip(OLD_Z[:at] + points, 0, "H", 1), EXTENDED_AT, "QI", 0, 0)
    (tmp_path / "old.laz").write_bytes(content)
    cloud = read(tmp_path / "old.laz")
    assert np.array_equal(cloud.positions, read(tmp_path / "new.laz").positions)
    write(cloud, tmp_path / "old.laz")
    assert np.array_equal(read(tmp_path / "old.laz").positions, cloud.positions)
    (tmp_path / "old.laz").write_bytes(content[:-30])
    with pytest.raises(FileFormatError, match="points are damaged"):
        read(tmp_path / "old.laz")


def test_a_table_whose_place_stands_at_the_end(tmp_path: Path) -> None:
    """Who writes to a pipe learns too late where the table is."""
    content = sample(".laz", 3, version="1.2")
    at = number(content, POINTS_AT, "I")
    place = content[at : at + 8]
    (tmp_path / "a.laz").write_bytes(patched(content, at, "q", -1) + place)
    (tmp_path / "b.laz").write_bytes(content)
    assert np.array_equal(read(tmp_path / "a.laz").positions, read(tmp_path / "b.laz").positions)


def test_wide_points_are_not_compressed(tmp_path: Path) -> None:
    attributes = {f"a{i}": np.zeros((2, 255), dtype=np.uint8) for i in range(40)}
    cloud = PointCloud(np.zeros((2, 3)), attributes)
    with pytest.raises(FileFormatError, match=r"10200 extra bytes take too much memory; use \.las"):
        write(cloud, tmp_path / "a.laz")
    write(cloud, tmp_path / "a.las")
    assert read(tmp_path / "a.las").attributes["a39"].shape == (2, 255)


def test_a_file_that_shrinks_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.las"
    path.write_bytes(NEW)
    with las.open_(path) as reader:
        pieces = reader.pieces(10)
        path.write_bytes(NEW[:700])
        with pytest.raises(FileFormatError, match="became shorter"):
            next(pieces)


class PanicException(BaseException):
    """What the decompressor's Rust code raises is named so, and is no Exception."""


def test_panics_are_explained_and_interruptions_let_through() -> None:
    with (
        pytest.raises(FileFormatError, match=r"^trouble: index out of bounds$"),
        explained("trouble"),
    ):
        raise PanicException("index out of bounds\nand more")
    with pytest.raises(KeyboardInterrupt), explained("trouble"):
        raise KeyboardInterrupt
    with pytest.raises(OSError, match="disk"), explained("trouble"):
        raise OSError("disk")

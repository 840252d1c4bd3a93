"""Room `cloud`: what of a LAS or LAZ file is not written again, and how that is noticed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import laspy  # type: ignore[import-untyped]
import lazrs  # type: ignore[import-untyped]
import numpy as np
import pytest

from pointmend.cloud import las, las_laz
from pointmend.cloud.files import read, write
from pointmend.cloud.las_header import Record
from pointmend.cloud.las_layout import LasLayout
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import LasMaker


def layout_of(cloud: PointCloud) -> LasLayout:
    layout = cloud.metadata["las"]
    assert isinstance(layout, LasLayout)
    return layout


def test_spoilt_compression_is_noticed(
    tmp_path: Path, las_maker: LasMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    las_maker.file(tmp_path / "a.laz", 6)
    cloud = read(tmp_path / "a.laz")
    append = las_laz.Compressor.append

    def spoil(self: las_laz.Compressor, records: Any) -> None:
        records["X"][3] += 1
        append(self, records)

    monkeypatch.setattr(las_laz.Compressor, "append", spoil)
    with pytest.raises(FileFormatError, match=r"did not keep all points as they are; write \.las"):
        write(cloud, tmp_path / "b.laz")
    assert not (tmp_path / "b.laz").exists()


def test_waveforms_of_several_channels_are_kept_or_refused(
    tmp_path: Path, las_maker: LasMaker
) -> None:
    """Lazrs 0.8.2 does not keep their fields; a later one may."""
    theirs = las_maker.file(tmp_path / "a.las", 9).points.array
    complaint = ""
    try:
        write(read(tmp_path / "a.las"), tmp_path / "b.laz")
    except FileFormatError as error:
        complaint = str(error)
    assert (
        "write .las" in complaint
        or las_maker.records(tmp_path / "b.laz").tobytes() == theirs.tobytes()
    )


def copc(path: Path, las_maker: LasMaker) -> Any:
    """Write points in chunks of any size, with the records that make a LAZ file a COPC file."""
    plain = path.with_name("plain.las")
    theirs = las_maker.file(plain, 7).points.array
    layout = layout_of(read(plain))
    vlr = lazrs.LazVlr.new_for_compression(7, 0, True)
    info = Record.new(("copc", 1), "COPC info VLR", bytes(160))
    kept = [r for r in layout.records if r.key[0] != "LASF_Spec"]
    records = [info, *kept, Record.new(("laszip encoded", 22204), "", vlr.record_data())]
    body = b"".join(r.to_bytes() for r in records)
    file = io.BytesIO()
    file.write(layout.header.raw + body)
    compressor = lazrs.LasZipCompressor(file, vlr)
    compressor.compress_chunks([theirs[a:b].tobytes() for a, b in ((0, 10), (10, 11), (11, 50))])
    compressor.done()
    head = b"\0\0" + b"copc".ljust(16, b"\0") + (1000).to_bytes(2, "little")
    extended = [
        *layout.extended_records,
        Record(head + (32).to_bytes(8, "little") + bytes(32), bytes(32)),
        Record(b"\0\0" + b"LAStools".ljust(16, b"\0") + b"\x1e\0" + bytes(40), b""),
    ]
    place = file.seek(0, io.SEEK_END)
    file.write(b"".join(r.to_bytes() for r in extended))
    header = layout.header.with_format(7, 36, compressed=True).patched(
        points_at=len(layout.header.raw) + len(body), records=len(records),
        extended_at=place, extended=len(extended),
    )  # fmt: skip
    path.write_bytes(header.raw + file.getvalue()[len(header.raw) :])
    return theirs


def test_copc_becomes_an_ordinary_laz(tmp_path: Path, las_maker: LasMaker) -> None:
    source, target = tmp_path / "a.copc.laz", tmp_path / "b.copc.laz"
    theirs = copc(source, las_maker)
    assert las_maker.records(source).tobytes() == theirs.tobytes()  # laspy takes it for COPC's LAZ
    cloud = read(source)
    assert np.array_equal(cloud.positions, laspy.read(source).xyz)
    assert las.losses(cloud) == ("COPC index", "LAX index")
    write(cloud, target)
    back = read(target)
    assert las.losses(back) == ()
    keys = [r.key for r in layout_of(back).records]
    assert keys == [("someone", 12), ("LASF_Projection", 2112), ("laszip encoded", 22204)]
    assert [r.key for r in layout_of(back).extended_records] == [("later", 9)]
    assert las_maker.records(target).tobytes() == theirs.tobytes()


@pytest.mark.parametrize(("bit", "words"), [(2, "is kept"), (4, "copy the .wdp file")])
def test_waveforms_are_left_out_and_their_fields_kept(
    tmp_path: Path, las_maker: LasMaker, bit: int, words: str
) -> None:
    las_maker.file(tmp_path / "a.las", 4, "1.3")
    raw = bytearray((tmp_path / "a.las").read_bytes())
    raw[6] |= bit
    if bit == 2:
        raw[227:235] = len(raw).to_bytes(8, "little")
        raw += b"the waves" * 100
    (tmp_path / "a.las").write_bytes(raw)
    cloud = read(tmp_path / "a.las")
    (lost,) = las.losses(cloud)
    assert words in lost
    write(cloud, tmp_path / "b.las")
    back = read(tmp_path / "b.las")
    assert np.array_equal(
        back.attributes["wavepacket_offset"], cloud.attributes["wavepacket_offset"]
    )
    header = layout_of(back).header
    assert header.number("waveforms_at") == 0
    assert header.number("global_encoding") & 6 == (4 if bit == 4 else 0)
    assert len((tmp_path / "b.las").read_bytes()) == len(raw) - (900 if bit == 2 else 0)


def test_points_without_wave_packets_have_no_waveforms(tmp_path: Path, las_maker: LasMaker) -> None:
    las_maker.file(tmp_path / "a.las", 1, "1.3")
    raw = bytearray((tmp_path / "a.las").read_bytes())
    raw[6] |= 4
    (tmp_path / "a.las").write_bytes(raw)
    assert las.losses(read(tmp_path / "a.las")) == ()


def test_waveforms_among_the_extended_records(tmp_path: Path, las_maker: LasMaker) -> None:
    las_maker.file(tmp_path / "a.las", 9)
    raw = (tmp_path / "a.las").read_bytes()
    at = raw.rindex(b"later\0")
    record = b"LASF_Spec".ljust(16, b"\0") + b"\xff\xff"
    (tmp_path / "a.las").write_bytes(raw[:at] + record + raw[at + 18 :])
    cloud = read(tmp_path / "a.las")
    assert layout_of(cloud).extended_records[0].data == b""
    assert len(las.losses(cloud)) == 1
    write(cloud, tmp_path / "b.las")
    assert len((tmp_path / "b.las").read_bytes()) == len(raw) - 70060

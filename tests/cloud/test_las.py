"""Room `cloud`: LAS and LAZ files come back with every bit that is not a moved coordinate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import laspy  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud import las
from pointmend.cloud.files import read, write
from pointmend.cloud.las_header import Header
from pointmend.cloud.las_layout import LasLayout
from pointmend.cloud.las_points import dimensions, record_type
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import LasMaker

quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
KINDS = [
    (version, point_format)
    for version, most in (("1.1", 1), ("1.2", 3), ("1.3", 5), ("1.4", 10))
    for point_format in range(most + 1)
]


def layout_of(cloud: PointCloud) -> LasLayout:
    layout = cloud.metadata["las"]
    assert isinstance(layout, LasLayout)
    return layout


def header_of(path: Path) -> Any:
    with laspy.open(path) as reader:
        return reader.header


def same_bits(a: Any, b: Any) -> bool:
    return bool(a.dtype.itemsize == b.dtype.itemsize and a.tobytes() == b.tobytes())


@pytest.mark.parametrize("point_format", range(11))
def test_dimensions_are_those_of_laspy(point_format: int) -> None:
    theirs = laspy.PointFormat(point_format)
    ours = {d.name: d for d in dimensions(point_format)}
    assert list(ours) == [d.name for d in theirs.dimensions if d.name not in "XYZ"]
    assert record_type(point_format, ()).itemsize == theirs.size
    assert {d.name: d.num_bits for d in theirs.standard_dimensions if d.name in ours} == {
        name: d.bits or 8 * d.dtype.itemsize for name, d in ours.items()
    }


@pytest.mark.parametrize("suffix", [".las", ".laz"])
@pytest.mark.parametrize(("version", "point_format"), KINDS)
def test_every_kind_of_file_comes_back(
    tmp_path: Path, las_maker: LasMaker, version: str, point_format: int, suffix: str
) -> None:
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    # More than one channel is too much for the wave packets of lazrs, which made this file.
    theirs = las_maker.file(source, point_format, version, channels=1 if point_format > 8 else 4)
    cloud = read(source)
    assert np.array_equal(cloud.positions, theirs.xyz)
    assert list(cloud.attributes) == [d.name for d in dimensions(point_format)]
    for name, values in cloud.attributes.items():
        assert same_bits(values, np.asarray(theirs[name])), name
    write(cloud, target)
    assert same_bits(las_maker.records(target), theirs.points.array)
    before, after = source.read_bytes(), target.read_bytes()
    if suffix == ".las":
        assert after == before
    else:  # the record of the compression has another description
        assert header_of(target).vlrs.get("LasZipVlr")
        assert len(after) == len(before)
        assert after[:227] == before[:227]


@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_old_headers_with_bytes_nobody_asked_for(
    tmp_path: Path, las_maker: LasMaker, suffix: str
) -> None:
    las_maker.file(tmp_path / "in.las", 1, "1.1")
    raw = bytearray((tmp_path / "in.las").read_bytes())
    raw[25] = 0  # LAS 1.0 has the header of 1.1, and a mark before the points
    at = int.from_bytes(raw[96:100], "little")
    raw[96:100] = (at + 2 + 5).to_bytes(4, "little")
    raw[94:96] = (227 + 5).to_bytes(2, "little")
    raw[26:58] = b"\xff\xfe not UTF-8".ljust(32, b"\x07")
    raw[90:94] = b"\xff\xff\x00\x00"  # day 65535 of year 0
    raw[at:at] = b"\xcc\xdd"
    raw[227:227] = b"extra"
    (tmp_path / "old.las").write_bytes(raw)
    cloud = read(tmp_path / "old.las")
    write(cloud, tmp_path / f"again{suffix}")
    write(read(tmp_path / f"again{suffix}"), tmp_path / "back.las")
    assert (tmp_path / "back.las").read_bytes() == bytes(raw)


@pytest.mark.parametrize("suffix", [".las", ".laz"])
@pytest.mark.parametrize("point_format", [3, 7])
def test_extra_bytes(tmp_path: Path, las_maker: LasMaker, point_format: int, suffix: str) -> None:
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    theirs = las_maker.file(source, point_format, extras=las_maker.extras)
    cloud = read(source)
    assert {n: cloud.attributes[n].dtype.str for n in ("height", "normal", "pair", "many")} == {
        "height": "<u2", "normal": "<f4", "pair": "<i8", "many": "|u1",
    }  # fmt: skip
    assert cloud.attributes["normal"].shape == (50, 3)
    assert same_bits(cloud.attributes["height"], theirs.points.array["height"])  # not scaled
    write(cloud, target)
    assert same_bits(las_maker.records(target), theirs.points.array)
    assert layout_of(read(target)).extras == layout_of(cloud).extras
    if suffix == ".las":
        assert target.read_bytes() == source.read_bytes()

    del cloud.attributes["pair"]
    cloud = cloud.with_attribute("double", np.arange(50, dtype=np.float32))
    cloud = cloud.with_attribute("moved", np.linspace(0, 1, 50))
    cloud = cloud.with_attribute("flag", np.arange(50) % 2 == 0)
    write(cloud, target)
    changed = laspy.read(target)
    names = ["height", "normal", "many", "double", "moved", "flag"]
    assert list(changed.point_format.extra_dimension_names) == names
    assert changed.point_format.dimension_by_name("height").scales == [0.1]
    assert np.array_equal(changed["moved"], np.linspace(0, 1, 50))
    assert same_bits(changed.points.array["normal"], theirs.points.array["normal"])
    assert changed["flag"].tolist() == [1, 0] * 25


def test_bytes_that_nobody_described(tmp_path: Path, las_maker: LasMaker) -> None:
    source = tmp_path / "a.las"
    las_maker.file(source, 1, "1.2", extras=[laspy.ExtraBytesParams(name="seven", type="7u1")])
    raw = source.read_bytes()
    source.write_bytes(raw.replace(b"LASF_Spec\0", b"no_longer\0"))
    cloud = read(source)
    assert cloud.attributes["ExtraBytes"].shape == (50, 7)
    write(cloud, tmp_path / "b.las")
    assert (tmp_path / "b.las").read_bytes() == source.read_bytes()
    write(cloud.with_attribute("new", np.arange(50.0)), tmp_path / "b.las")
    back = read(tmp_path / "b.las")
    assert np.array_equal(back.attributes["new"], np.arange(50.0))
    assert np.array_equal(back.attributes["ExtraBytes"], cloud.attributes["ExtraBytes"])


def test_descriptions_with_odd_names_and_sizes(tmp_path: Path, las_maker: LasMaker) -> None:
    params = [laspy.ExtraBytesParams(name=f"name{i}", type="u2") for i in range(5)]
    las_maker.file(tmp_path / "a.las", 1, "1.2", extras=params)
    raw = (tmp_path / "a.las").read_bytes()
    for old, new in zip(range(5), (b"x\0\0\0\0", b"intensity", b"\xff\x07", b"\0" * 5, b"name0")):
        raw = raw.replace(b"name%d" % old + bytes(8), new + bytes(13 - len(new)))
    (tmp_path / "a.las").write_bytes(raw)
    cloud = read(tmp_path / "a.las")
    assert list(cloud.attributes)[-5:] == ["x_2", "intensity_2", "ÿ_", "unnamed", "name0"]
    write(cloud, tmp_path / "b.las")
    assert (tmp_path / "b.las").read_bytes() == raw

    # The last description is now of more bytes than there are, of an unknown type, of nothing.
    at = raw.index(b"name0" + bytes(8)) - 2
    for kind in (b"\x08\0", b"\x1f\0", b"\0\0"):
        raw = raw[:at] + kind + raw[at + 2 :]
        (tmp_path / "a.las").write_bytes(raw)
        cloud = read(tmp_path / "a.las")
        assert list(cloud.attributes)[-2:] == ["unnamed", "ExtraBytes"]
        assert cloud.attributes["ExtraBytes"].shape == (50, 2)
        write(cloud, tmp_path / "b.las")
        assert (tmp_path / "b.las").read_bytes() == raw


def test_unmoved_points_keep_their_integers_and_moved_ones_are_rounded(
    tmp_path: Path, las_maker: LasMaker
) -> None:
    theirs = las_maker.file(tmp_path / "a.laz", 6)
    cloud = read(tmp_path / "a.laz")
    positions = cloud.positions.copy()
    positions[::2] += [0.0149, -0.0004, 0.13]
    write(cloud.with_positions(positions), tmp_path / "b.laz")
    found = las_maker.records(tmp_path / "b.laz")
    for axis, steps in zip("XYZ", (1, 0, 1)):
        wanted = theirs.points.array[axis].copy()
        wanted[::2] += steps
        assert np.array_equal(found[axis], wanted)
    back = read(tmp_path / "b.laz")
    off = np.abs(back.positions - positions).max(axis=0)
    assert (off <= [0.00501, 0.000501, 0.12501]).all()
    assert las.precision(cloud) == pytest.approx(0.125, abs=1e-6)
    header = layout_of(back).header
    bounds = np.array(header.numbers("bounds")).reshape(3, 2)
    assert np.array_equal(bounds, np.stack(back.bounds()[::-1], axis=1))


@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_counts_and_selected_points(tmp_path: Path, las_maker: LasMaker, suffix: str) -> None:
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    theirs = las_maker.file(source, 6, extras=las_maker.extras)
    cloud = read(source)
    index = [40, 3, 3, 7]
    write(cloud[index], target)
    assert same_bits(las_maker.records(target), theirs.points.array[index])
    header = header_of(target)
    returns = np.asarray(theirs.return_number)[index]
    assert header.point_count == 4
    wanted = np.bincount(returns, minlength=16)[1:]
    assert header.number_of_points_by_return.tolist() == wanted.tolist()
    assert np.array_equal(header.mins, theirs.xyz[index].min(axis=0))
    assert [(v.user_id, v.record_data) for v in header.evlrs] == [("later", b"\x01" * 70000)]
    write(cloud[:0], target)
    back = read(target)
    assert len(back) == 0
    assert list(back.attributes) == list(cloud.attributes)
    assert laspy.read(target).header.maxs.tolist() == [0, 0, 0]


@pytest.mark.parametrize("point_format", [1, 6])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_old_count_field_is_kept_as_it_was(
    tmp_path: Path, las_maker: LasMaker, point_format: int, repeated: bool
) -> None:
    las_maker.file(tmp_path / "a.las", point_format)
    raw = bytearray((tmp_path / "a.las").read_bytes())
    if repeated:
        raw[107:111] = (50).to_bytes(4, "little")
    (tmp_path / "a.las").write_bytes(raw)
    write(read(tmp_path / "a.las")[:20], tmp_path / "b.las")
    header = layout_of(read(tmp_path / "b.las")).header
    assert header.count == header.number("count") == 20
    assert header.number("legacy_count") == (20 if repeated else 0)
    by_return = header.numbers("by_return")[:5] if repeated else (0,) * 5
    assert header.numbers("legacy_by_return") == by_return


def test_from_las_to_laz_and_back(tmp_path: Path, las_maker: LasMaker) -> None:
    las_maker.file(tmp_path / "a.las", 8, extras=las_maker.extras)
    write(read(tmp_path / "a.las"), tmp_path / "b.LAZ")
    write(read(tmp_path / "b.LAZ"), tmp_path / "c.las")
    assert (tmp_path / "c.las").read_bytes() == (tmp_path / "a.las").read_bytes()
    assert header_of(tmp_path / "b.LAZ").are_points_compressed


def test_new_colours_and_times_change_the_point_format(tmp_path: Path, las_maker: LasMaker) -> None:
    colours = {name: np.arange(50, dtype=np.uint8) for name in ("red", "green", "blue")}
    las_maker.file(tmp_path / "a.las", 0, "1.1")
    cloud = read(tmp_path / "a.las")
    for name, values in {**colours, "gps_time": np.arange(50.0), "nir": colours["red"]}.items():
        cloud = cloud.with_attribute(name, values)
    write(cloud, tmp_path / "b.las")
    found = laspy.read(tmp_path / "b.las")
    assert (str(found.header.version), found.point_format.id) == ("1.2", 3)
    assert found.green.tolist() == [257 * i for i in range(50)]
    assert found.gps_time.tolist() == list(range(50))
    assert found["nir"].dtype == np.uint8  # as extra bytes: no old format has it
    back = read(tmp_path / "b.las")
    assert same_bits(back.positions, cloud.positions)
    write(back.with_attribute("green", np.full(50, 3, np.uint8)), tmp_path / "b.las")
    assert read(tmp_path / "b.las").attributes["green"].tolist() == [771] * 50

    las_maker.file(tmp_path / "a.las", 9, channels=1)
    cloud = read(tmp_path / "a.las")
    for name, values in {**colours, "nir": np.full(50, 300)}.items():
        cloud = cloud.with_attribute(name, values)
    write(cloud, tmp_path / "b.las")
    found = laspy.read(tmp_path / "b.las")
    assert found.point_format.id == 10
    assert found.nir.tolist() == [300] * 50
    assert np.array_equal(found.x_t, cloud.attributes["x_t"], equal_nan=True)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("classification", np.full(50, 32), "whole numbers of 0 to 31"),
        ("return_number", np.full(50, -1), "whole numbers of 0 to 7"),
        ("intensity", np.full(50, 0.5), "uint16 numbers"),
        ("intensity", np.full(50, 65536), "uint16 numbers"),
        ("intensity", np.full((50, 2), 1), "uint16 numbers"),
        ("intensity", np.full(50, "bright"), "uint16 numbers"),
        ("gps_time", np.full(50, 2**53 + 1), "float64 numbers"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    tmp_path: Path, las_maker: LasMaker, name: str, values: Any, message: str
) -> None:
    las_maker.file(tmp_path / "a.las", 1, "1.2")
    cloud = read(tmp_path / "a.las").with_attribute(name, values)
    with pytest.raises(FileFormatError, match=f"'{name}' does not fit: LAS has {message} there"):
        write(cloud, tmp_path / "b.las")
    assert not (tmp_path / "b.las").exists()


def test_values_of_another_type_that_fit_are_taken(tmp_path: Path, las_maker: LasMaker) -> None:
    las_maker.file(tmp_path / "a.las", 1, "1.2")
    cloud = read(tmp_path / "a.las").with_attribute("classification", np.full(50, 31))
    cloud = cloud.with_attribute("withheld", np.arange(50) % 2 == 1)
    cloud = cloud.with_attribute("intensity", np.arange(50.0, dtype=">f4"))
    del cloud.attributes["user_data"]
    write(cloud, tmp_path / "b.las")
    back = read(tmp_path / "b.las").attributes
    assert back["classification"].tolist() == [31] * 50
    assert back["withheld"].tolist() == [0, 1] * 25
    assert back["intensity"].tolist() == list(range(50))
    assert not back["user_data"].any()
    assert same_bits(back["key_point"], cloud.attributes["key_point"])


def test_points_that_left_the_grid_are_refused(tmp_path: Path, las_maker: LasMaker) -> None:
    las_maker.file(tmp_path / "a.las", 1, "1.2")
    cloud = read(tmp_path / "a.las")
    with pytest.raises(FileFormatError, match=r"50 points do not fit: x = .* scale 0\.01"):
        write(cloud.with_positions(cloud.positions + np.array([1e8, 0, 0])), tmp_path / "b.las")
    holes = cloud.positions.copy()
    holes[3:6, 1] = np.nan
    holes[7, 1] = np.inf
    with pytest.raises(FileFormatError, match="4 points have no finite y"):
        write(cloud.with_positions(holes), tmp_path / "b.las")


@given(
    st.sampled_from(range(11)),
    st.lists(st.sampled_from(["u1", "i4", "f8", "2u2", "3f4", "4u1"]), max_size=3),
    st.integers(0, 30),
    st.sampled_from([1.0, 0.1, 1e-3, 0.3048006, 1e-7, 2.0**-12, 1 / 3]),
    st.floats(-1e7, 1e7),
    st.sampled_from([".las", ".laz"]),
    st.integers(0, 99),
)
@quick
def test_any_file_comes_back(
    tmp_path: Path,
    las_maker: LasMaker,
    point_format: int,
    extras: list[str],
    count: int,
    scale: float,
    offset: float,
    suffix: str,
    seed: int,
) -> None:
    header = laspy.LasHeader(point_format=point_format)
    for i, kind in enumerate(extras):
        header.add_extra_dim(laspy.ExtraBytesParams(name=f"extra {i}", type=kind))
    header.scales, header.offsets = [scale] * 3, [offset, -offset, 0.0]
    theirs = laspy.LasData(header)
    with np.errstate(invalid="ignore"):
        las_maker.fill(theirs, count, seed, channels=1)
        theirs.write(tmp_path / f"a{suffix}")
    cloud = read(tmp_path / f"a{suffix}")
    write(cloud, tmp_path / f"b{suffix}")
    assert same_bits(las_maker.records(tmp_path / f"b{suffix}"), theirs.points.array)
    back = read(tmp_path / f"b{suffix}")
    assert same_bits(back.positions, cloud.positions)
    assert list(back.attributes) == list(cloud.attributes)


def test_fields_a_version_does_not_have() -> None:
    header = Header(b"LASF".ljust(227, b"\0"))
    assert header.number("extended") == 0
    assert header.patched(extended=3).raw == header.raw

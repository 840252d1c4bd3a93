"""Room `cloud`: E57 files keep their points, number types and attributes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from pointmend.cloud import e57
from pointmend.cloud.e57 import E57Layout
from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud

if TYPE_CHECKING:
    from tests.cloud.conftest import E57Maker, E57Scan, SameClouds

Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)
COUNT = 30
UTM = (500_123.25, 5_400_321.5, 123.0)
TURNED = (0.9, 0.1, -0.2, 0.3)  # not of length 1: readers have to normalise
STILL = (1.0, 0.0, 0.0, 0.0)
DOUBLE, SINGLE = ("Float", "double"), ("Float", "single")
MILLIMETRES = ("ScaledInteger", -100_000, 100_000, 0.001, 0.5)
COORDINATES = [
    "double",
    "single",
    "scaled",
    "whole",
    "spherical",
    "spherical, from 0",
    "spherical, scaled",
    "both",
]
POSES: dict[str, dict[str, Any]] = {
    "none": {},
    "shifted": {"translation": UTM},
    "turned": {"translation": UTM, "rotation": TURNED},
}


def layout_of(cloud: PointCloud) -> E57Layout:
    layout = cloud.metadata["e57"]
    assert isinstance(layout, E57Layout)
    return layout


@pytest.mark.parametrize("kind", COORDINATES)
@pytest.mark.parametrize("pose", POSES)
def test_unmoved_points_come_back_to_the_last_bit(
    tmp_path: Path, e57_maker: E57Maker, same_clouds: SameClouds, kind: str, pose: str
) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    fields = {
        "returnCount": (("Integer", 1, 1), np.ones(COUNT)),
        **e57_maker.coordinates[kind],
        **e57_maker.extras(),
    }
    e57_maker.file(source, e57_maker.scan(fields, **POSES[pose]))
    cloud = read(source)
    write(cloud, target)
    assert e57_maker.records(target) == e57_maker.records(source)
    assert list(e57_maker.records(target)[0]) == list(fields)
    back = read(target)
    assert same_clouds(back, cloud)
    assert layout_of(back).scans[0].fields == layout_of(cloud).scans[0].fields
    some = RNG.permutation(COUNT)[:9]
    write(cloud[some], target)
    assert same_clouds(read(target), cloud[some])
    write(cloud, tmp_path / "again.e57")
    write(cloud, target)
    assert target.read_bytes() == (tmp_path / "again.e57").read_bytes()


def by_hand(made: E57Scan) -> Array:
    """Return the positions (N, 3) of a scan with Cartesian doubles, by quaternion products."""
    points: Array = np.stack([made.fields[f"cartesian{axis}"][1] for axis in "XYZ"], axis=1)
    q = np.array(made.rotation or STILL) / np.linalg.norm(made.rotation or STILL)
    points = points + 2 * np.cross(q[1:], np.cross(q[1:], points) + q[0] * points)
    shifted: Array = points + np.array(made.translation or (0.0, 0.0, 0.0))
    return shifted


@pytest.mark.parametrize("pose", POSES)
def test_positions_are_global(tmp_path: Path, e57_maker: E57Maker, pose: str) -> None:
    made = e57_maker.scan(e57_maker.cartesian(), **POSES[pose])
    found = read(e57_maker.file(tmp_path / "a.e57", made)).positions
    assert np.abs(found - by_hand(made)).max() <= 4e-9


def test_range_and_angles() -> None:
    from pointmend.cloud.e57_scan import to_cartesian

    found = to_cartesian(np.array([[2.0, np.pi / 2, 0.0], [3.0, 0.0, np.pi / 2], [1.0, 0.0, 0.0]]))
    assert np.allclose(found, [[0, 2, 0], [0, 0, 3], [1, 0, 0]], atol=1e-15)


@pytest.mark.parametrize("kind", COORDINATES)
@pytest.mark.parametrize("pose", POSES)
def test_moved_points_keep_their_types(
    tmp_path: Path, e57_maker: E57Maker, kind: str, pose: str
) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    cloud = read(e57_maker.file(source, e57_maker.scan(e57_maker.coordinates[kind], **POSES[pose])))
    moved = cloud.positions + RNG.normal(scale=0.02, size=(COUNT, 3))
    moved[:5] = cloud.positions[:5]
    there = cloud.with_positions(moved)
    write(there, target)
    back = read(target)
    assert np.array_equal(back.positions[:5], cloud.positions[:5])
    assert np.abs(back.positions - moved).max() <= e57.precision(there)
    limit = {"single": 1e-5, "scaled": 2e-3, "spherical, from 0": 3e-5, "spherical, scaled": 0.1}
    assert e57.precision(there) < limit.get(kind, 1e-5 if kind == "both" else 1e-7)
    kinds = [type(f) for f in layout_of(cloud).scans[0].fields.values()]
    found = [type(f) for f in layout_of(back).scans[0].fields.values()]
    if kind != "whole":  # whole numbers cannot move by centimetres
        assert found[:3] == kinds[:3]
    if kind.startswith("spherical"):  # azimuths are counted as the file does
        before, after = (
            e57_maker.records(path)[0]["sphericalAzimuth"] for path in (source, target)
        )
        unit = 1000 if kind.endswith("scaled") else 1
        assert np.abs(np.subtract(before, after)).max() < 1.0 * unit
    if kind == "both":  # the second kind of coordinates follows the first
        spheres = np.stack(
            [back.attributes[n] for n in list(e57_maker.coordinates[kind])[3:]], axis=1
        )
        azimuth = np.arctan2(*layout_of(back).stored[:, 1::-1].T)  # type: ignore[index]
        turns = (spheres[5:, 1] - azimuth[5:]) / (2 * np.pi)
        assert np.allclose(turns, np.rint(turns), atol=1e-5)


def test_single_precision_gives_way_where_it_would_lose(
    tmp_path: Path, e57_maker: E57Maker
) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    cloud = read(e57_maker.file(source, e57_maker.scan(e57_maker.cartesian(SINGLE))))
    far = cloud.with_positions(cloud.positions + np.array(UTM) + 1 / 3)
    write(far, target)
    assert np.array_equal(read(target).positions, far.positions)
    assert not any(f.bits == 32 for f in layout_of(read(target)).scans[0].fields.values())


def test_scaled_integers_get_wider_limits(tmp_path: Path, e57_maker: E57Maker) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    cloud = read(e57_maker.file(source, e57_maker.scan(e57_maker.cartesian(MILLIMETRES))))
    far = cloud.with_positions(cloud.positions + 5000.0)
    write(far, target)
    assert np.abs(read(target).positions - far.positions).max() <= 0.0005 + 1e-9
    assert [type(f).__name__ for f in layout_of(read(target)).scans[0].fields.values()] == [
        "IntegerField"
    ] * 3
    gone = cloud.with_positions(cloud.positions + 1e18)  # more than 64 bits of millimetres
    write(gone, target)
    assert np.array_equal(read(target).positions, gone.positions)


def test_limits_follow_the_points(tmp_path: Path, e57_maker: E57Maker) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    more = {"sphericalBounds": {"rangeMinimum": 0.5}}
    made = e57_maker.scan(e57_maker.cartesian((*DOUBLE, -500.0, 500.0)), translation=UTM, more=more)
    cloud = read(e57_maker.file(source, made))
    write(cloud, target)
    assert layout_of(read(target)).scans[0].fields == layout_of(cloud).scans[0].fields
    assert layout_of(read(target)).scans[0].node.get("sphericalBounds") is not None
    far = cloud.with_positions(cloud.positions + np.array([0.0, 700.0, 0.0]))
    write(far, target)
    scan = layout_of(read(target)).scans[0]
    lows = [f.node().float_limits()[0] for f in scan.fields.values()]
    assert lows[0] == -500.0
    assert lows[1] < -1e300
    assert scan.node.get("sphericalBounds") is None


def test_rounding_of_angles_is_no_movement(tmp_path: Path, e57_maker: E57Maker) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    cloud = read(
        e57_maker.file(
            source, e57_maker.scan(e57_maker.coordinates["spherical"], **POSES["turned"])
        )
    )
    write(cloud.with_positions(np.nextafter(cloud.positions, 0.0)), target)
    assert e57_maker.records(target) == e57_maker.records(source)


def test_all_numbers_are_attributes_in_fitting_types(tmp_path: Path, e57_maker: E57Maker) -> None:
    made = e57_maker.extras()
    cloud = read(
        e57_maker.file(tmp_path / "a.e57", e57_maker.scan({**e57_maker.cartesian(), **made}))
    )
    assert {n: v.dtype.str[1:] for n, v in cloud.attributes.items()} == {
        "intensity": "f4", "red": "u1", "green": "u1", "blue": "u1", "rowIndex": "i4",
        "columnIndex": "u1", "timeStamp": "f8", "vendor:id": "i8",
    }  # fmt: skip
    assert cloud.attributes["vendor:id"].tolist() == made["vendor:id"][1].tolist()
    assert cloud.attributes["green"].tolist() == made["colorGreen"][1].tolist()
    assert np.array_equal(cloud.attributes["timeStamp"], made["timeStamp"][1] * 1e-6 + 1e5)


def test_changed_attributes_change_their_type_if_they_must(
    tmp_path: Path, e57_maker: E57Maker
) -> None:
    path = tmp_path / "a.e57"
    cloud = read(
        e57_maker.file(path, e57_maker.scan({**e57_maker.cartesian(), **e57_maker.extras()}))
    )
    attributes = dict(cloud.attributes)
    attributes["red"] = np.arange(COUNT) + 300
    attributes["intensity"] = np.arange(COUNT) / 3
    attributes["timeStamp"] = np.full(COUNT, np.nan)
    attributes["vendor:id"] = np.arange(COUNT) % 2 == 0
    del attributes["green"]
    write(PointCloud(cloud.positions, attributes, cloud.metadata), path)
    back = read(path)
    assert list(back.attributes) == [n for n in cloud.attributes if n != "green"]
    for name in ("red", "intensity", "timeStamp", "vendor:id"):
        assert np.array_equal(back.attributes[name], attributes[name], equal_nan=True)
    large = np.arange(COUNT) + 2**53
    write(cloud.with_attribute("intensity", large), path)
    assert np.array_equal(read(path).attributes["intensity"], large)

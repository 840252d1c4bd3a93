"""Room `cloud`: E57 files keep their scans, poses and pictures, and points without a position."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pointmend.cloud import e57
from pointmend.cloud.e57 import E57Layout
from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import E57Maker, SameClouds

LIB: Any = importlib.import_module("pye57.libe57")
RNG = np.random.default_rng(0)
COUNT = 30
UTM = (500_123.25, 5_400_321.5, 123.0)
TURNED = (0.9, 0.1, -0.2, 0.3)  # not of length 1: readers have to normalise
DOUBLE, SINGLE = ("Float", "double"), ("Float", "single")
MILLIMETRES = ("ScaledInteger", -100_000, 100_000, 0.001, 0.5)
POSES: dict[str, dict[str, Any]] = {
    "none": {},
    "shifted": {"translation": UTM},
    "turned": {"translation": UTM, "rotation": TURNED},
}


def layout_of(cloud: PointCloud) -> E57Layout:
    layout = cloud.metadata["e57"]
    assert isinstance(layout, E57Layout)
    return layout


def test_what_is_said_about_scans_is_kept(tmp_path: Path, e57_maker: E57Maker) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    more = {
        "sensorModel": "S 7", "description": "north\nwing", "temperature": 0.1,
        "acquisitionStart": {"dateTimeValue": 1e9 / 3, "isAtomicClockReferenced": 0},
        "indexBounds": {"rowMinimum": 0, "rowMaximum": 999}, "vendor:flags": [1, [2.5, "x"]],
    }  # fmt: skip
    cloud = read(e57_maker.file(source, e57_maker.scan(e57_maker.cartesian(), TURNED, UTM, more)))
    scan = layout_of(cloud).scans[0]
    assert scan.name == "scan 0"
    assert e57.losses(cloud) == ("E57 pointGroupingSchemes",)
    write(cloud[3:], target)
    file = LIB.ImageFile(str(target), "r")
    root = file.root()
    found = root["data3D"][0]
    assert found["guid"].value() == "{0}"
    assert found["sensorModel"].value() == "S 7"
    assert found["description"].value() == "north\nwing"
    assert found["temperature"].value() == 0.1
    assert found["acquisitionStart"]["dateTimeValue"].value() == 1e9 / 3
    assert found["indexBounds"]["rowMaximum"].value() == 999
    assert found["vendor:flags"][1][1].value() == "x"
    assert [found["pose"]["rotation"][axis].value() for axis in "wxyz"] == list(TURNED)
    assert [found["pose"]["translation"][axis].value() for axis in "xyz"] == list(UTM)
    assert not found.isDefined("pointGroupingSchemes")
    local = e57_maker.records(source)[0]["cartesianX"][3:]
    assert found["cartesianBounds"]["xMaximum"].value() == max(local)
    assert found["cartesianBounds"]["xMinimum"].value() == min(local)
    assert root["coordinateMetadata"].value() == 'PROJCS["ETRS89 / UTM zone 32N"]'
    assert root["vendor:project"]["name"].value() == "Ä & <B> ]]>"
    assert root["vendor:project"]["numbers"][1].value() == 2
    assert root["guid"].value() not in ("", "{old}")
    picture = root["images2D"][0]["visualReferenceRepresentation"]["jpegImage"].read_buffer()
    assert bytes(picture) == bytes(range(150)) * 2
    file.close()


def several(path: Path, e57_maker: E57Maker) -> PointCloud:
    return read(
        e57_maker.file(
            path,
            e57_maker.scan({**e57_maker.cartesian(), **e57_maker.extras()}),
            e57_maker.scan({**e57_maker.cartesian(MILLIMETRES, 0)}, translation=(1.0, 2.0, 3.0)),
            e57_maker.scan(
                {**e57_maker.cartesian(SINGLE, 12), "intensity": (DOUBLE, RNG.random(12))},
                TURNED,
                UTM,
            ),
        )
    )


def test_several_scans_in_one_cloud(
    tmp_path: Path, e57_maker: E57Maker, same_clouds: SameClouds
) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    cloud = several(source, e57_maker)
    assert cloud.attributes["scan"].tolist() == [0] * COUNT + [2] * 12
    assert cloud.attributes["scan"].dtype.kind == "u"
    assert cloud.attributes["intensity"].dtype == np.float64
    assert cloud.attributes["red"][COUNT:].tolist() == [0] * 12
    assert np.isnan(cloud.attributes["timeStamp"][COUNT:]).all()
    write(cloud, target)
    assert e57_maker.records(target) == e57_maker.records(source)
    assert same_clouds(read(target), cloud)

    part = cloud[cloud.attributes["scan"] == 2]
    write(part, target)
    assert [len(r["cartesianX"]) for r in e57_maker.records(target)] == [0, 0, 12]
    assert same_clouds(read(target), part)

    mixed = cloud[RNG.permutation(len(cloud))]
    assert "order of points of different scans" in e57.losses(mixed)
    assert "order of points of different scans" not in e57.losses(cloud)
    write(mixed, target)
    order = np.argsort(mixed.attributes["scan"], kind="stable")
    assert same_clouds(read(target), mixed[order])

    coloured = cloud.with_attribute("red", np.full(len(cloud), 9, dtype=np.uint8))
    write(coloured, target)
    assert read(target).attributes["red"].tolist() == [9] * len(cloud)


def test_clouds_that_forgot_their_scans(tmp_path: Path, e57_maker: E57Maker) -> None:
    target = tmp_path / "out.e57"
    cloud = several(tmp_path / "in.e57", e57_maker)
    attributes = {n: v for n, v in cloud.attributes.items() if n != "scan"}
    merged = PointCloud(cloud.positions, attributes, cloud.metadata)
    assert e57.losses(merged) == (
        "poses and descriptions of 3 scans",
        "attribute 'vendor:id'",
    )
    write(merged, target)
    assert np.array_equal(read(target).positions, cloud.positions)
    for wrong, message in [
        (np.full(len(cloud), 3), "attribute 'scan' has 3, but the file had 3 scans"),
        (np.full(len(cloud), -1), "attribute 'scan' has -1"),
        (np.zeros(len(cloud)), "attribute 'scan' must be whole numbers"),
    ]:
        with pytest.raises(FileFormatError, match=message):
            write(cloud.with_attribute("scan", wrong), target)


STATES = np.array([0, 1, 2] * 10)


@pytest.mark.parametrize("kind", ["double", "scaled", "spherical"])
@pytest.mark.parametrize("pose", POSES)
def test_points_without_a_position(
    tmp_path: Path, e57_maker: E57Maker, kind: str, pose: str
) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    name = "sphericalInvalidState" if kind == "spherical" else "cartesianInvalidState"
    fields = {**e57_maker.coordinates[kind], name: (("Integer", 0, 2), STATES)}
    cloud = read(e57_maker.file(source, e57_maker.scan(fields, **POSES[pose])))
    assert np.array_equal(np.isnan(cloud.positions).any(axis=1), STATES != 0)
    assert cloud.attributes[name].tolist() == STATES.tolist()
    write(cloud, target)
    assert e57_maker.records(target) == e57_maker.records(source)  # directions too
    # A point that got a position is valid from then on, one that lost it is not.
    changed = cloud.positions.copy()
    changed[1], changed[0] = 7.0, np.nan
    write(cloud.with_positions(changed), target)
    back = read(target)
    assert np.abs(back.positions[1] - 7.0).max() <= e57.precision(cloud)
    assert np.isnan(back.positions[0]).all()
    assert back.attributes[name].tolist() == [2, 0, *STATES[2:]]
    # Nobody comes back to life because the attribute is gone.
    write(PointCloud(cloud.positions, {}, cloud.metadata), target)
    assert np.array_equal(read(target).positions, cloud.positions, equal_nan=True)


def test_holes_that_are_called_valid_stay_so(
    tmp_path: Path, e57_maker: E57Maker, same_clouds: SameClouds
) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    fields = {
        **e57_maker.cartesian(),
        "cartesianInvalidState": (("Integer", 0, 2), np.zeros(COUNT)),
    }
    fields["cartesianX"][1][3] = np.nan
    cloud = read(e57_maker.file(source, e57_maker.scan(fields)))
    write(cloud, target)
    assert same_clouds(read(target), cloud)
    assert not read(target).attributes["cartesianInvalidState"].any()


def test_holes_in_files_without_states(
    tmp_path: Path, e57_maker: E57Maker, same_clouds: SameClouds
) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    fields = e57_maker.cartesian()
    fields["cartesianX"][1][3], fields["cartesianY"][1][4] = np.nan, np.inf
    cloud = read(e57_maker.file(source, e57_maker.scan(fields)))
    write(cloud, target)
    assert same_clouds(read(target), cloud)
    for kind in (MILLIMETRES, ("Integer", -50_000, 50_000)):
        cloud = read(e57_maker.file(source, e57_maker.scan(e57_maker.cartesian(kind))))
        holes = cloud.positions.copy()
        holes[2] = np.nan
        write(cloud.with_positions(holes), target)
        assert np.array_equal(read(target).positions, holes, equal_nan=True)
        assert layout_of(read(target)).scans[0].fields["cartesianX"].bits < 64
        holes[3, 1] = np.inf  # what only floats can hold
        write(cloud.with_positions(holes), target)
        assert np.array_equal(read(target).positions, holes, equal_nan=True)


def normals() -> dict[str, Any]:
    return {f"nor:normal{axis}": (SINGLE, RNG.normal(size=COUNT)) for axis in "XYZ"}


def test_normals_have_short_names_unless_they_are_turned(
    tmp_path: Path, e57_maker: E57Maker
) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    for pose, names in [("shifted", ["nx", "ny", "nz"]), ("turned", list(normals()))]:
        made = e57_maker.scan({**e57_maker.cartesian(), **normals()}, **POSES[pose])
        cloud = read(e57_maker.file(source, made))
        assert list(cloud.attributes) == names
        write(cloud, target)
        assert e57_maker.records(target) == e57_maker.records(source)
    write(cloud.with_attribute("nx", np.zeros(COUNT)), target)
    assert "attribute 'nx'" in e57.losses(cloud.with_attribute("nx", np.zeros(COUNT)))


def test_fields_that_cannot_be_carried_are_named(tmp_path: Path, e57_maker: E57Maker) -> None:
    path = tmp_path / "a.e57"
    made = e57_maker.scan(
        {**e57_maker.cartesian(), "x": (DOUBLE, np.zeros(COUNT)), "scan": (DOUBLE, np.ones(COUNT))}
    )
    cloud = read(e57_maker.file(path, made))
    assert cloud.attributes == {}
    assert e57.losses(cloud)[:2] == ("field 'x'", "field 'scan'")
    write(cloud, path)
    assert list(e57_maker.records(path)[0]) == ["cartesianX", "cartesianY", "cartesianZ"]

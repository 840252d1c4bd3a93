"""Room `cloud`: E57 files keep their scans, poses, number types and pictures."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pointmend.cloud import e57
from pointmend.cloud.e57 import E57Layout
from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

LIB: Any = importlib.import_module("pye57.libe57")
Array = npt.NDArray[Any]
RNG = np.random.default_rng(0)
COUNT = 30
UTM = (500_123.25, 5_400_321.5, 123.0)
TURNED = (0.9, 0.1, -0.2, 0.3)  # not of length 1: readers have to normalise
STILL = (1.0, 0.0, 0.0, 0.0)
DOUBLE, SINGLE = ("Float", "double"), ("Float", "single")
MILLIMETRES = ("ScaledInteger", -100_000, 100_000, 0.001, 0.5)


@dataclass
class Made:
    """A scan to be written by libE57 itself: per field its node type and its raw numbers."""

    fields: dict[str, tuple[tuple[Any, ...], Array]]
    rotation: tuple[float, ...] | None = None
    translation: tuple[float, ...] | None = None
    more: dict[str, Any] = field(default_factory=dict)


def node(file: Any, value: Any) -> Any:
    """Return a node for a dict, a list, text, a number, bytes, or a tuple that names a type."""
    match value:
        case dict():
            made = LIB.StructureNode(file)
            for name, child in value.items():
                made.set(name, node(file, child))
            return made
        case list():
            made = LIB.VectorNode(file, True)
            for child in value:
                made.append(node(file, child))
            return made
        case str():
            return LIB.StringNode(file, value)
        case int():
            return LIB.IntegerNode(file, value)
        case ("Integer", low, high):
            return LIB.IntegerNode(file, low, low, high)
        case ("ScaledInteger", low, high, scale, offset):
            return LIB.ScaledIntegerNode(file, low, low, high, scale, offset)
        case ("Float", precision, *limits):
            single = precision == "single"
            return LIB.FloatNode(file, 0.0, LIB.E57_SINGLE if single else LIB.E57_DOUBLE, *limits)
        case _:
            return LIB.FloatNode(file, float(value))


def put_table(file: Any, parent: Any, name: str, fields: dict[str, Any]) -> None:
    vector = LIB.CompressedVectorNode(
        file, node(file, {n: kind for n, (kind, _) in fields.items()}), LIB.VectorNode(file, True)
    )
    parent.set(name, vector)
    buffers, kept = LIB.VectorSourceDestBuffer(), []
    count = len(next(iter(fields.values()))[1])
    for path, (kind, values) in fields.items():
        code = {"double": "d", "single": "f"}.get(kind[1], "q")
        kept.append(np.empty(max(count, 1), dtype=code))
        kept[-1][:count] = values
        buffers.append(LIB.SourceDestBuffer(file, path, kept[-1], max(count, 1), False, False))
    writer = vector.writer(buffers)
    if count:
        writer.write(count)
    writer.close()


def make(path: Path, *scans: Made) -> Path:
    """Write an E57 file with libE57's own calls, with a picture, an extension and a table."""
    file = LIB.ImageFile(str(path), "w")
    root = file.root()
    file.extensionsAdd("", LIB.E57_V1_0_URI)
    file.extensionsAdd("nor", "http://www.libe57.org/E57_NOR_surface_normals.txt")
    file.extensionsAdd("vendor", "http://example.org/vendor")
    described = {
        "formatName": "ASTM E57 3D Imaging Data File",
        "guid": "{old}",
        "versionMajor": 1,
        "versionMinor": 0,
        "coordinateMetadata": 'PROJCS["ETRS89 / UTM zone 32N"]',
        "vendor:project": {"name": "Ä & <B> ]]>", "numbers": [1, 2], "temperature": 20.1},
        "images2D": [{"guid": "{image}", "visualReferenceRepresentation": {}}],
    }
    for name, value in described.items():
        root.set(name, node(file, value))
    blob = LIB.BlobNode(file, 300)
    root["images2D"][0]["visualReferenceRepresentation"].set("jpegImage", blob)
    blob.write(bytearray(range(150)) * 2, 0, 300)
    data = LIB.VectorNode(file, True)
    root.set("data3D", data)
    for number, scan in enumerate(scans):
        said: dict[str, Any] = {"guid": f"{{{number}}}", "name": f"scan {number}", **scan.more}
        if scan.translation is not None:
            said["pose"] = {
                "rotation": dict(zip("wxyz", map(float, scan.rotation or STILL))),
                "translation": dict(zip("xyz", map(float, scan.translation))),
            }
        made = node(file, said)
        data.append(made)
        made.set("pointGroupingSchemes", LIB.StructureNode(file))
        groups = {"idElementValue": (("Integer", 0, 9), np.arange(3))}
        put_table(file, made["pointGroupingSchemes"], "groups", groups)
        put_table(file, made, "points", scan.fields)
    file.close()
    return path


def raw_records(path: Path) -> list[dict[str, list[float]]]:
    """Return what is stored per point, read by libE57's own calls."""
    file = LIB.ImageFile(str(path), "r")
    found = []
    for scan in file.root()["data3D"]:
        points = scan["points"]
        count = max(points.childCount(), 1)
        prototype = LIB.StructureNode(points.prototype())
        arrays, buffers = {}, LIB.VectorSourceDestBuffer()
        for i in range(len(prototype)):
            kind = prototype[i]
            single = isinstance(kind, LIB.FloatNode) and kind.precision() == LIB.E57_SINGLE
            code = ("f" if single else "d") if isinstance(kind, LIB.FloatNode) else "q"
            name = kind.elementName()
            arrays[name] = np.empty(count, dtype=code)
            buffers.append(LIB.SourceDestBuffer(file, name, arrays[name], count, False, False))
        if points.childCount():
            points.reader(buffers).read()
        found.append({n: v[: points.childCount()].tolist() for n, v in arrays.items()})
    file.close()
    return found


def cartesian(kind: tuple[Any, ...] = DOUBLE, count: int = COUNT) -> dict[str, Any]:
    if kind[0] == "Float":
        values = RNG.normal(scale=20, size=(3, count))
    else:
        values = RNG.integers(-50_000, 50_000, (3, count)).astype(np.float64)
    return {f"cartesian{axis}": (kind, v) for axis, v in zip("XYZ", values)}


def spherical(kind: tuple[Any, ...] = DOUBLE, turn: float = 0.0) -> dict[str, Any]:
    angles = RNG.uniform(-1.5, 1.5, COUNT)
    azimuth = RNG.uniform(-3, 3, COUNT) + turn
    if kind[0] != "Float":
        angles, azimuth = np.rint(angles * 1000), np.rint(azimuth * 1000)
    return {
        "sphericalRange": (DOUBLE, RNG.uniform(1, 30, COUNT)),
        "sphericalAzimuth": (kind, azimuth),
        "sphericalElevation": (kind, angles),
    }


def extras(count: int = COUNT) -> dict[str, Any]:
    return {
        "intensity": (SINGLE, RNG.random(count)),
        **{f"color{c}": (("Integer", 0, 255), RNG.integers(0, 256, count))
           for c in ("Red", "Green", "Blue")},
        "rowIndex": (("Integer", -5, 70_000), RNG.integers(-5, 70_000, count)),
        "columnIndex": (("Integer", 7, 7), np.full(count, 7)),
        "timeStamp": (("ScaledInteger", 0, 2**40, 1e-6, 1e5), RNG.integers(0, 2**40, count)),
        "vendor:id": (("Integer", -(2**63), 2**63 - 1), RNG.integers(-(2**63), 2**63 - 1, count)),
    }  # fmt: skip


COORDINATES = {
    "double": cartesian(),
    "single": cartesian(SINGLE),
    "scaled": cartesian(MILLIMETRES),
    "whole": cartesian(("Integer", -50_000, 50_000)),
    "spherical": spherical(),
    "spherical, from 0": spherical(SINGLE, turn=3.1),
    "spherical, scaled": spherical(("ScaledInteger", -4000, 4000, 0.001, 0.0)),
    "both": {**cartesian(SINGLE), **spherical()},
}
POSES: dict[str, dict[str, Any]] = {
    "none": {},
    "shifted": {"translation": UTM},
    "turned": {"translation": UTM, "rotation": TURNED},
}


def layout_of(cloud: PointCloud) -> E57Layout:
    layout = cloud.metadata["e57"]
    assert isinstance(layout, E57Layout)
    return layout


def same(a: PointCloud, b: PointCloud) -> bool:
    return bool(
        np.array_equal(a.positions, b.positions, equal_nan=True)
        and list(a.attributes) == list(b.attributes)
        and all(a.attributes[n].dtype == b.attributes[n].dtype for n in a.attributes)
        and all(
            np.array_equal(a.attributes[n], b.attributes[n], equal_nan=True) for n in a.attributes
        )
    )


@pytest.mark.parametrize("kind", COORDINATES)
@pytest.mark.parametrize("pose", POSES)
def test_unmoved_points_come_back_to_the_last_bit(tmp_path: Path, kind: str, pose: str) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    fields = {"returnCount": (("Integer", 1, 1), np.ones(COUNT)), **COORDINATES[kind], **extras()}
    make(source, Made(fields, **POSES[pose]))
    cloud = read(source)
    write(cloud, target)
    assert raw_records(target) == raw_records(source)
    assert list(raw_records(target)[0]) == list(fields)
    back = read(target)
    assert same(back, cloud)
    assert layout_of(back).scans[0].fields == layout_of(cloud).scans[0].fields
    some = RNG.permutation(COUNT)[:9]
    write(cloud[some], target)
    assert same(read(target), cloud[some])
    write(cloud, tmp_path / "again.e57")
    write(cloud, target)
    assert target.read_bytes() == (tmp_path / "again.e57").read_bytes()


def by_hand(made: Made) -> Array:
    """Return the positions (N, 3) of a scan with Cartesian doubles, by quaternion products."""
    points: Array = np.stack([made.fields[f"cartesian{axis}"][1] for axis in "XYZ"], axis=1)
    q = np.array(made.rotation or STILL) / np.linalg.norm(made.rotation or STILL)
    points = points + 2 * np.cross(q[1:], np.cross(q[1:], points) + q[0] * points)
    shifted: Array = points + np.array(made.translation or (0.0, 0.0, 0.0))
    return shifted


@pytest.mark.parametrize("pose", POSES)
def test_positions_are_global(tmp_path: Path, pose: str) -> None:
    made = Made(cartesian(), **POSES[pose])
    found = read(make(tmp_path / "a.e57", made)).positions
    assert np.abs(found - by_hand(made)).max() <= 4e-9


def test_range_and_angles() -> None:
    from pointmend.cloud.e57_scan import to_cartesian

    found = to_cartesian(np.array([[2.0, np.pi / 2, 0.0], [3.0, 0.0, np.pi / 2], [1.0, 0.0, 0.0]]))
    assert np.allclose(found, [[0, 2, 0], [0, 0, 3], [1, 0, 0]], atol=1e-15)


@pytest.mark.parametrize("kind", COORDINATES)
@pytest.mark.parametrize("pose", POSES)
def test_moved_points_keep_their_types(tmp_path: Path, kind: str, pose: str) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    cloud = read(make(source, Made(COORDINATES[kind], **POSES[pose])))
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
        before, after = (raw_records(path)[0]["sphericalAzimuth"] for path in (source, target))
        unit = 1000 if kind.endswith("scaled") else 1
        assert np.abs(np.subtract(before, after)).max() < 1.0 * unit
    if kind == "both":  # the second kind of coordinates follows the first
        spheres = np.stack([back.attributes[n] for n in list(COORDINATES[kind])[3:]], axis=1)
        azimuth = np.arctan2(*layout_of(back).stored[:, 1::-1].T)  # type: ignore[index]
        turns = (spheres[5:, 1] - azimuth[5:]) / (2 * np.pi)
        assert np.allclose(turns, np.rint(turns), atol=1e-5)


def test_single_precision_gives_way_where_it_would_lose(tmp_path: Path) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    cloud = read(make(source, Made(cartesian(SINGLE))))
    far = cloud.with_positions(cloud.positions + np.array(UTM) + 1 / 3)
    write(far, target)
    assert np.array_equal(read(target).positions, far.positions)
    assert not any(f.bits == 32 for f in layout_of(read(target)).scans[0].fields.values())


def test_scaled_integers_get_wider_limits(tmp_path: Path) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    cloud = read(make(source, Made(cartesian(MILLIMETRES))))
    far = cloud.with_positions(cloud.positions + 5000.0)
    write(far, target)
    assert np.abs(read(target).positions - far.positions).max() <= 0.0005 + 1e-9
    assert [type(f).__name__ for f in layout_of(read(target)).scans[0].fields.values()] == [
        "IntegerField"
    ] * 3
    gone = cloud.with_positions(cloud.positions + 1e18)  # more than 64 bits of millimetres
    write(gone, target)
    assert np.array_equal(read(target).positions, gone.positions)


def test_limits_follow_the_points(tmp_path: Path) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    more = {"sphericalBounds": {"rangeMinimum": 0.5}}
    made = Made(cartesian((*DOUBLE, -500.0, 500.0)), translation=UTM, more=more)
    cloud = read(make(source, made))
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


def test_rounding_of_angles_is_no_movement(tmp_path: Path) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    cloud = read(make(source, Made(COORDINATES["spherical"], **POSES["turned"])))
    write(cloud.with_positions(np.nextafter(cloud.positions, 0.0)), target)
    assert raw_records(target) == raw_records(source)


def test_all_numbers_are_attributes_in_fitting_types(tmp_path: Path) -> None:
    made = extras()
    cloud = read(make(tmp_path / "a.e57", Made({**cartesian(), **made})))
    assert {n: v.dtype.str[1:] for n, v in cloud.attributes.items()} == {
        "intensity": "f4", "red": "u1", "green": "u1", "blue": "u1", "rowIndex": "i4",
        "columnIndex": "u1", "timeStamp": "f8", "vendor:id": "i8",
    }  # fmt: skip
    assert cloud.attributes["vendor:id"].tolist() == made["vendor:id"][1].tolist()
    assert cloud.attributes["green"].tolist() == made["colorGreen"][1].tolist()
    assert np.array_equal(cloud.attributes["timeStamp"], made["timeStamp"][1] * 1e-6 + 1e5)


def test_what_is_said_about_scans_is_kept(tmp_path: Path) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    more = {
        "sensorModel": "S 7", "description": "north\nwing", "temperature": 0.1,
        "acquisitionStart": {"dateTimeValue": 1e9 / 3, "isAtomicClockReferenced": 0},
        "indexBounds": {"rowMinimum": 0, "rowMaximum": 999}, "vendor:flags": [1, [2.5, "x"]],
    }  # fmt: skip
    cloud = read(make(source, Made(cartesian(), TURNED, UTM, more)))
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
    local = raw_records(source)[0]["cartesianX"][3:]
    assert found["cartesianBounds"]["xMaximum"].value() == max(local)
    assert found["cartesianBounds"]["xMinimum"].value() == min(local)
    assert root["coordinateMetadata"].value() == 'PROJCS["ETRS89 / UTM zone 32N"]'
    assert root["vendor:project"]["name"].value() == "Ä & <B> ]]>"
    assert root["vendor:project"]["numbers"][1].value() == 2
    assert root["guid"].value() not in ("", "{old}")
    picture = root["images2D"][0]["visualReferenceRepresentation"]["jpegImage"].read_buffer()
    assert bytes(picture) == bytes(range(150)) * 2
    file.close()


def several(path: Path) -> PointCloud:
    return read(
        make(
            path,
            Made({**cartesian(), **extras()}),
            Made({**cartesian(MILLIMETRES, 0)}, translation=(1.0, 2.0, 3.0)),
            Made({**cartesian(SINGLE, 12), "intensity": (DOUBLE, RNG.random(12))}, TURNED, UTM),
        )
    )


def test_several_scans_in_one_cloud(tmp_path: Path) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    cloud = several(source)
    assert cloud.attributes["scan"].tolist() == [0] * COUNT + [2] * 12
    assert cloud.attributes["scan"].dtype.kind == "u"
    assert cloud.attributes["intensity"].dtype == np.float64
    assert cloud.attributes["red"][COUNT:].tolist() == [0] * 12
    assert np.isnan(cloud.attributes["timeStamp"][COUNT:]).all()
    write(cloud, target)
    assert raw_records(target) == raw_records(source)
    assert same(read(target), cloud)

    part = cloud[cloud.attributes["scan"] == 2]
    write(part, target)
    assert [len(r["cartesianX"]) for r in raw_records(target)] == [0, 0, 12]
    assert same(read(target), part)

    mixed = cloud[RNG.permutation(len(cloud))]
    assert "order of points of different scans" in e57.losses(mixed)
    assert "order of points of different scans" not in e57.losses(cloud)
    write(mixed, target)
    order = np.argsort(mixed.attributes["scan"], kind="stable")
    assert same(read(target), mixed[order])

    coloured = cloud.with_attribute("red", np.full(len(cloud), 9, dtype=np.uint8))
    write(coloured, target)
    assert read(target).attributes["red"].tolist() == [9] * len(cloud)


def test_clouds_that_forgot_their_scans(tmp_path: Path) -> None:
    target = tmp_path / "out.e57"
    cloud = several(tmp_path / "in.e57")
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
def test_points_without_a_position(tmp_path: Path, kind: str, pose: str) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    name = "sphericalInvalidState" if kind == "spherical" else "cartesianInvalidState"
    fields = {**COORDINATES[kind], name: (("Integer", 0, 2), STATES)}
    cloud = read(make(source, Made(fields, **POSES[pose])))
    assert np.array_equal(np.isnan(cloud.positions).any(axis=1), STATES != 0)
    assert cloud.attributes[name].tolist() == STATES.tolist()
    write(cloud, target)
    assert raw_records(target) == raw_records(source)  # directions too
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


def test_holes_that_are_called_valid_stay_so(tmp_path: Path) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    fields = {**cartesian(), "cartesianInvalidState": (("Integer", 0, 2), np.zeros(COUNT))}
    fields["cartesianX"][1][3] = np.nan
    cloud = read(make(source, Made(fields)))
    write(cloud, target)
    assert same(read(target), cloud)
    assert not read(target).attributes["cartesianInvalidState"].any()


def test_holes_in_files_without_states(tmp_path: Path) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    fields = cartesian()
    fields["cartesianX"][1][3], fields["cartesianY"][1][4] = np.nan, np.inf
    cloud = read(make(source, Made(fields)))
    write(cloud, target)
    assert same(read(target), cloud)
    for kind in (MILLIMETRES, ("Integer", -50_000, 50_000)):
        cloud = read(make(source, Made(cartesian(kind))))
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


def test_normals_have_short_names_unless_they_are_turned(tmp_path: Path) -> None:
    source, target = tmp_path / "in.e57", tmp_path / "out.e57"
    for pose, names in [("shifted", ["nx", "ny", "nz"]), ("turned", list(normals()))]:
        made = Made({**cartesian(), **normals()}, **POSES[pose])
        cloud = read(make(source, made))
        assert list(cloud.attributes) == names
        write(cloud, target)
        assert raw_records(target) == raw_records(source)
    write(cloud.with_attribute("nx", np.zeros(COUNT)), target)
    assert "attribute 'nx'" in e57.losses(cloud.with_attribute("nx", np.zeros(COUNT)))


def test_fields_that_cannot_be_carried_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.e57"
    made = Made({**cartesian(), "x": (DOUBLE, np.zeros(COUNT)), "scan": (DOUBLE, np.ones(COUNT))})
    cloud = read(make(path, made))
    assert cloud.attributes == {}
    assert e57.losses(cloud)[:2] == ("field 'x'", "field 'scan'")
    write(cloud, path)
    assert list(raw_records(path)[0]) == ["cartesianX", "cartesianY", "cartesianZ"]


def test_changed_attributes_change_their_type_if_they_must(tmp_path: Path) -> None:
    path = tmp_path / "a.e57"
    cloud = read(make(path, Made({**cartesian(), **extras()})))
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

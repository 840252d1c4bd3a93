"""Room `cloud`: E57 files made from other clouds, and what pye57 makes of them."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud import e57
from pointmend.cloud.e57 import E57Layout
from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import SameClouds

PYE57: Any = importlib.import_module("pye57")
quick = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
RNG = np.random.default_rng(0)
COUNT = 30
UTM = (500_123.25, 5_400_321.5, 123.0)
TURNED = np.array([0.5, 0.5, -0.5, 0.5])


def test_clouds_from_elsewhere(tmp_path: Path) -> None:
    target = tmp_path / "new.E57"
    positions = RNG.normal(scale=30, size=(COUNT, 3)) + np.array(UTM)
    held = {
        "red": RNG.integers(0, 256, COUNT).astype(np.uint8),
        "intensity": RNG.random(COUNT).astype(np.float32).astype(">f4"),
        "green": np.full(COUNT, 7, dtype=np.uint8),
        "blue": np.full(COUNT, 9, dtype=np.uint8),
        "nx": RNG.random(COUNT),
        "ny": RNG.random(COUNT),
        "nz": RNG.random(COUNT),
        "rowIndex": np.arange(COUNT) + 2**40,
        "isColorInvalid": np.arange(COUNT) % 2 == 0,
    }
    lost = {
        "label": np.arange(COUNT),
        "scan": np.arange(COUNT),
        "timeStamp": np.full((COUNT, 2), 1.5),
        "columnIndex": np.full(COUNT, 1.5),
        "returnIndex": np.full(COUNT, 2**63, dtype=np.uint64),
    }
    cloud = PointCloud(positions, {**held, **lost})
    assert e57.losses(cloud) == tuple(f"attribute '{name}'" for name in lost)
    write(cloud, target)
    back = read(target)
    assert np.array_equal(back.positions, positions)
    assert list(back.attributes) == list(held)
    for name, values in held.items():
        wanted = np.uint8 if values.dtype.kind == "b" else values.dtype.newbyteorder("=")
        assert back.attributes[name].dtype == wanted
        assert np.array_equal(back.attributes[name], values)
    layout = back.metadata["e57"]
    assert isinstance(layout, E57Layout)
    scan = layout.scans[0]
    assert scan.pose.translation is not None
    assert np.abs(scan.pose.translation - positions.mean(axis=0)).max() < 100
    assert np.array_equal(scan.pose.translation, np.rint(scan.pose.translation))
    colours, intensity = scan.node.get("colorLimits"), scan.node.get("intensityLimits")
    assert colours is not None
    assert intensity is not None
    assert [n.integer(None, 0) for _, n in colours.children] == [0, 255] * 3
    assert intensity.children[1][1].real(None, 0.0) == held["intensity"].max()
    assert e57.losses(PointCloud(positions, {"red": held["red"]})) == ("attribute 'red'",)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_holes_and_tiny_clouds_from_elsewhere(
    tmp_path: Path, same_clouds: SameClouds, count: int
) -> None:
    positions = np.arange(count * 3.0).reshape(-1, 3) + 1e6
    positions[1:2], positions[2:3, 0], positions[3:4, 2] = np.nan, -np.inf, np.nan
    write(PointCloud(positions), tmp_path / "a.e57")
    back = read(tmp_path / "a.e57")
    assert np.array_equal(back.positions, positions, equal_nan=True)
    if count == 5:
        assert back.attributes["cartesianInvalidState"].tolist() == [0, 2, 2, 2, 0]
    write(back, tmp_path / "b.e57")
    assert same_clouds(read(tmp_path / "b.e57"), back)
    told = PointCloud(positions, {"cartesianInvalidState": np.zeros(count, dtype=np.bool_)})
    write(told, tmp_path / "a.e57")
    assert np.array_equal(read(tmp_path / "a.e57").positions, positions, equal_nan=True)


@given(
    st.lists(st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4", "f8"]), max_size=3),
    st.sampled_from([1e-6, 1.0, 1e3, 1e9, 1e300]),
    st.floats(-1e7, 1e7),
    st.integers(0, 12),
    st.integers(0, 2**32 - 1),
)
@quick
def test_any_cloud_comes_back(
    tmp_path: Path,
    same_clouds: SameClouds,
    types: list[str],
    scale: float,
    shift: float,
    count: int,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    positions = rng.normal(size=(count, 3)) * scale + shift
    attributes = {
        name: rng.integers(0, 256, (count, 8), dtype=np.uint8).view(code)[:, 0]
        for name, code in zip(("intensity", "timeStamp", "scanner"), types)
    }
    cloud = PointCloud(positions, attributes)
    write(cloud, tmp_path / "a.e57")
    attributes.pop("scanner", None)
    assert same_clouds(read(tmp_path / "a.e57"), PointCloud(positions, attributes))


def test_what_pye57_writes(tmp_path: Path, same_clouds: SameClouds) -> None:
    path = tmp_path / "a.e57"
    values = RNG.normal(size=(COUNT, 3))
    data = {f"cartesian{axis}": v for axis, v in zip("XYZ", values.T)}
    data["intensity"] = np.arange(COUNT, dtype=np.float64)
    data |= {f"color{c}": np.full(COUNT, 5, dtype=np.uint8) for c in ("Red", "Green", "Blue")}
    with PYE57.E57(str(path), mode="w") as file:
        for _ in range(2):
            file.write_scan_raw(data, name="A", rotation=TURNED, translation=np.array(UTM))
    cloud = read(path)
    assert cloud.attributes["scan"].tolist() == [0] * COUNT + [1] * COUNT
    with PYE57.E57(str(path)) as file:
        theirs = file.read_scan(1, intensity=True, colors=True, ignore_missing_fields=True)
    assert np.abs(cloud.positions[COUNT:, 1] - theirs["cartesianY"]).max() < 1e-8
    assert np.array_equal(cloud.attributes["intensity"][COUNT:], theirs["intensity"])
    write(cloud, tmp_path / "b.e57")
    assert same_clouds(read(tmp_path / "b.e57"), cloud)
    with PYE57.E57(str(tmp_path / "b.e57")) as file:
        ours = file.read_scan(1, intensity=True, colors=True, ignore_missing_fields=True)
        assert file.get_header(1)["name"].value() == "A"
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_pye57_is_imported_when_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = "import sys, pointmend.cloud.files; sys.exit('pye57' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    monkeypatch.setitem(sys.modules, "pye57", None)
    monkeypatch.delitem(sys.modules, "pye57.libe57")
    with pytest.raises(FileFormatError, match="pip install pye57"):
        e57.write(PointCloud(np.zeros((1, 3))), tmp_path / "a.e57")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_is_an_error_and_no_crash(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import resource, sys
        from pathlib import Path
        import numpy as np
        from pointmend.cloud import e57
        from pointmend.cloud.point_cloud import PointCloud
        from pointmend.errors import FileFormatError
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        try:
            e57.write(PointCloud(np.ones((50_000, 3))), Path(sys.argv[1]))
        except FileFormatError as error:
            assert "cannot be written" in str(error)
        else:
            sys.exit(3)
        """
    )
    run = [sys.executable, "-c", code, str(tmp_path / "a.e57")]
    assert subprocess.run(run, check=False).returncode == 0

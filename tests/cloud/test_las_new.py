"""Room `cloud`: clouds from elsewhere become the LAS file that fits them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import laspy  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud import las
from pointmend.cloud.files import read, write
from pointmend.cloud.las_new import Summary, grid
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
POSITIONS = np.random.default_rng(0).normal(size=(20, 3)) * 10 + np.array([5e5, 5e6, 0])
BYTES = np.arange(20, dtype=np.uint8)
COLOURS = {name: BYTES * 13 for name in ("red", "green", "blue")}


@pytest.mark.parametrize(
    ("attributes", "version", "point_format"),
    [
        ({}, "1.2", 0),
        ({"gps_time": np.arange(20.0)}, "1.2", 1),
        ({"gps_time": np.arange(20, dtype=np.float32)}, "1.2", 1),
        (COLOURS, "1.2", 2),
        ({**COLOURS, "gps_time": np.arange(20)}, "1.2", 3),
        ({"classification": np.full(20, 31), "scan_angle_rank": np.full(20, -90)}, "1.2", 0),
        ({"classification": np.full(20, 32)}, "1.4", 6),
        ({"number_of_returns": np.full(20, 8)}, "1.4", 6),
        ({"scan_angle": np.full(20, -30000)}, "1.4", 6),
        ({"scanner_channel": np.full(20, 3)}, "1.4", 6),
        ({"label": BYTES}, "1.4", 6),
        ({**COLOURS, "label": BYTES}, "1.4", 7),
        ({**COLOURS, "nir": np.full(20, 60000)}, "1.4", 8),
        ({"nir": np.full(20, 60000)}, "1.4", 6),
        ({"red": BYTES}, "1.4", 6),
    ],
)
@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_version_and_point_format(
    tmp_path: Path, attributes: dict[str, Any], version: str, point_format: int, suffix: str
) -> None:
    cloud = PointCloud(POSITIONS, attributes)
    assert las.losses(cloud) == ()
    write(cloud, tmp_path / f"a{suffix}")
    found = laspy.read(tmp_path / f"a{suffix}")
    assert (str(found.header.version), found.point_format.id) == (version, point_format)
    assert found.header.global_encoding.wkt == (version == "1.4")
    assert found.header.generating_software == "pointmend"
    assert found.header.creation_date is not None
    old_count = int.from_bytes((tmp_path / f"a{suffix}").read_bytes()[107:111], "little")
    assert old_count == (20 if version == "1.2" else 0)
    is_coloured = "green" in attributes
    for name, values in attributes.items():
        factor = 257 if is_coloured and values.dtype == np.uint8 and name != "label" else 1
        assert np.array_equal(found[name], values.astype(np.float64) * factor), name
    back = read(tmp_path / f"a{suffix}")
    assert np.abs(back.positions - POSITIONS).max() <= las.precision(cloud) < 1e-6


def test_attributes_become_extra_bytes_of_their_own_type(tmp_path: Path) -> None:
    kinds = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 256, (20, 24), dtype=np.uint8)
    attributes: dict[str, Any] = {f"one {kind}": noise.view(kind)[:, 0] for kind in kinds}
    attributes |= {f"three {kind}": noise.view(kind)[:, :3] for kind in kinds}
    attributes |= {f"big {k}": noise.view(k)[:, :2].astype(">" + k) for k in ("u2", "i4", "u8")}
    attributes |= {
        "bytes": noise,
        "flag": BYTES % 2 == 1,
        "flags": np.stack([BYTES % 2 == 1] * 2, axis=1),
        "half": BYTES.astype(np.float16),
        "single": BYTES[:, np.newaxis],
        "Ж" * 20: BYTES,
        "Ж" * 21: BYTES + 1,
    }
    write(PointCloud(POSITIONS, attributes), tmp_path / "a.laz")
    back = read(tmp_path / "a.laz").attributes
    for name, values in attributes.items():
        if name.startswith(("one", "three", "bytes")):
            assert back[name].dtype == values.dtype
            assert back[name].tobytes() == np.ascontiguousarray(values).tobytes(), name
        elif name.startswith("big"):
            assert back[name].dtype == values.dtype.newbyteorder("=")
            assert np.array_equal(back[name], values)
    assert back["flag"].tolist() == [0, 1] * 10
    assert back["flags"].shape == (20, 2)
    assert back["half"].dtype == np.float32
    assert back["half"].tolist() == list(range(20))
    assert back["single"].tolist() == list(range(20))
    assert back["Ж" * 16].tolist() == list(range(20))
    assert back["Ж" * 15 + "_2"].tolist() == list(range(1, 21))


def test_names_that_mean_something_else(tmp_path: Path) -> None:
    attributes: dict[str, Any] = {
        "intensity": np.linspace(0, 1, 20, dtype=np.float32),
        "user_data": np.full(20, -1),
        "gps_time": np.full(20, 2**53 + 1),
        "wide": np.arange(100.0).reshape(20, 5),
        "X": BYTES,
        "point_source_id": np.ones((20, 2), dtype=np.uint16),
        "red": np.ones((20, 2), dtype=np.uint8),
        "green": BYTES,
        "blue": BYTES,
    }
    write(PointCloud(POSITIONS, attributes), tmp_path / "a.las")
    back = read(tmp_path / "a.las").attributes
    assert not back["intensity"].any()
    assert np.array_equal(back["intensity_float32"], attributes["intensity"])
    assert back["user_data_int64"].tolist() == [-1] * 20
    assert back["gps_time_int64"].tolist() == [2**53 + 1] * 20
    assert back["wide_4"].tolist() == list(range(4, 100, 5))
    assert np.array_equal(back["X"], BYTES)
    assert back["point_source_id_uint16"].shape == (20, 2)
    assert back["red"].shape == (20, 2)
    assert np.array_equal(back["green"], BYTES)


def test_what_is_no_number_is_left_out(tmp_path: Path) -> None:
    attributes: dict[str, Any] = {
        "word": np.full(20, "tree"),
        "when": np.zeros(20, "M8[s]"),
        "nothing": np.zeros((20, 0)),
        "label": BYTES,
    }
    cloud = PointCloud(POSITIONS, attributes)
    assert las.losses(cloud) == (
        "attribute 'word' (<U4)",
        "attribute 'when' (datetime64[s])",
        "attribute 'nothing' (float64)",
    )
    write(cloud, tmp_path / "a.las")
    back = read(tmp_path / "a.las")
    assert "label" in back.attributes
    assert back.attributes.keys().isdisjoint({"word", "when", "nothing"})
    write(back.with_attribute("word", attributes["word"]), tmp_path / "b.las")
    assert "word" not in read(tmp_path / "b.las").attributes


def test_too_much_is_refused(tmp_path: Path) -> None:
    many = {f"a{i}": np.zeros(20) for i in range(400)}
    with pytest.raises(FileFormatError, match=r"400 attributes are not among .* room for 341"):
        write(PointCloud(POSITIONS, many), tmp_path / "a.las")
    large = {f"a{i}": np.zeros((20, 255), dtype=np.uint8) for i in range(260)}
    with pytest.raises(FileFormatError, match="66320 bytes per point, LAS has room for 65535"):
        write(PointCloud(POSITIONS, large), tmp_path / "a.las")
    with pytest.raises(FileFormatError, match=r"up to 1e.308 are too large"):
        write(PointCloud(np.array([[-1e308, 0, 0], [1e308, 0, 0]])), tmp_path / "a.las")
    holes = POSITIONS.copy()
    holes[:3, 1] = np.nan
    with pytest.raises(FileFormatError, match="3 points have no finite y, which LAS cannot hold"):
        write(PointCloud(holes), tmp_path / "a.las")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("positions", "step", "zero"),
    [
        # Decimals: the grid they lie on, with a million steps across.
        ([[500000.123, 5000000.457, 3.5], [500900.0, 5000001.0, 0.0]], 1e-4, [500000, 5000000, 0]),
        ([[0, 0, 0], [5e6, 5e6, 1000]], 1.0, [0, 0, 0]),
        ([[0, 0, 0], [90, 2, 2]], 1e-5, [0, 0, 0]),
        # No decimals: a thousand million steps across.
        ([[1 / 3, 0, 0], [900 / 7, 0, 1]], 1e-6, [0, 0, 0]),
        ([[-1 / 3, -1 / 7, 0], [1 / 3, 1 / 7, 0]], 1e-9, [-0.4, -0.2, 0]),
        # A small thing far away: what float64 can tell there.
        ([[5e6 + 1 / 3, 0, 0], [5e6 + 1 / 3 + 1e-4, 0, 0]], 1e-8, [5000000.3333, 0, 0]),
        # A single point, no point, and points without coordinates.
        ([[0.125, 7, -2]], 1e-3, [0.125, 7, -2]),
        (np.empty((0, 3)), 1.0, [0, 0, 0]),
        ([[np.nan, np.inf, 3.0]], 1.0, [0, 0, 3]),
    ],
)
def test_the_grid(positions: Any, step: float, zero: list[float]) -> None:
    found = grid(Summary.of(PointCloud(np.array(positions, dtype=np.float64))))
    assert found[0] == step
    assert found[1].tolist() == pytest.approx(zero)


@given(
    st.floats(-300, 290).map(lambda p: 10.0**p),
    st.floats(0, 12).map(lambda p: 10.0**p),
    st.sampled_from([np.float32, np.float64]),
    st.integers(1, 30),
    st.integers(0, 99),
)
@quick
def test_grids_hold_what_float32_could_tell(
    tmp_path: Path, extent: float, distance: float, kind: type[Any], count: int, seed: int
) -> None:
    """Whatever the size and the place of a cloud, it comes back as float32 would hold it."""
    if kind is np.float32:
        extent = min(max(extent, 1e-25), 1e25)
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=3) * extent * distance
    with np.errstate(over="ignore"):
        positions = (rng.uniform(-extent, extent, (count, 3)) + centre).astype(kind)
    cloud = PointCloud(positions.astype(np.float64))
    write(cloud, tmp_path / "a.las")
    back = read(tmp_path / "a.las")
    with np.errstate(over="ignore", under="ignore"):
        allowed = np.maximum(las.precision(cloud), 0)
        coarse = np.spacing(np.abs(cloud.positions).max().astype(np.float32)).astype(np.float64)
    off = np.abs(back.positions - cloud.positions).max()
    assert off <= allowed
    if 1e-30 < extent < 1e30:
        assert off <= coarse
    write(back, tmp_path / "b.las")
    assert (tmp_path / "a.las").read_bytes() == (tmp_path / "b.las").read_bytes()


@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_pieces_from_elsewhere_wait_for_each_other(tmp_path: Path, suffix: str) -> None:
    """The first piece tells neither how far the others reach nor which classes they have."""
    positions = POSITIONS + np.arange(20)[:, np.newaxis] * 1000
    attributes = {"classification": BYTES * 10, "word": np.full(20, "tree"), **COLOURS}
    cloud = PointCloud(positions, attributes)
    with las.create(cloud[:3], 20, tmp_path / f"pieces{suffix}") as writer:
        for start in range(0, 20, 3):
            writer.append(cloud[start : start + 3])
    write(cloud, tmp_path / f"whole{suffix}")
    found = (tmp_path / f"pieces{suffix}").read_bytes()
    assert found == (tmp_path / f"whole{suffix}").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2  # the temporary file is gone
    with (
        pytest.raises(FileFormatError, match="other attributes"),
        las.create(cloud[:3], 20, tmp_path / f"pieces{suffix}") as writer,
    ):
        writer.append(PointCloud(positions))


def test_from_ply_and_back(tmp_path: Path) -> None:
    attributes: dict[str, Any] = {**COLOURS, "label": BYTES, "time": np.arange(20.0)}
    write(PointCloud(POSITIONS, attributes), tmp_path / "a.ply")
    write(read(tmp_path / "a.ply"), tmp_path / "b.laz")
    write(read(tmp_path / "b.laz"), tmp_path / "c.ply")
    back = read(tmp_path / "c.ply")
    assert np.allclose(back.positions, POSITIONS, rtol=0, atol=1e-7)
    assert back.attributes["green"].tolist() == [13 * 257 * i for i in range(20)]
    assert np.array_equal(back.attributes["label"], BYTES)
    write(back, tmp_path / "d.las")
    assert read(tmp_path / "d.las").attributes["green"].dtype == np.uint16

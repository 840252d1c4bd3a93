"""Room `cloud`: KITTI's bare rows of float32 are kept, and refused where they would lose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud import kitti
from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import Refuse

quick = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def scan(count: int = 500) -> npt.NDArray[Any]:
    """Rows as a scanner has them, (N, 4)."""
    rng = np.random.default_rng(0)
    rows = rng.normal(scale=[30, 30, 2, 0], size=(count, 4))
    rows[:, 3] = rng.random(count)
    return rows.astype("<f4")


def file_of(folder: Path, rows: npt.NDArray[Any]) -> Path:
    path = folder / "scan.bin"
    rows.astype("<f4").tofile(path)
    return path


def test_rows_are_positions_and_intensity(tmp_path: Path) -> None:
    rows = scan()
    cloud = read(file_of(tmp_path, rows))
    assert np.array_equal(cloud.positions, rows[:, :3])
    assert list(cloud.attributes) == ["intensity"]
    assert cloud.attributes["intensity"].dtype == np.float32
    assert np.array_equal(cloud.attributes["intensity"], rows[:, 3])


def test_what_does_not_move_keeps_its_bits(tmp_path: Path) -> None:
    rows = scan()
    rows[3, 3] = np.array(0x7F800001, dtype=np.uint32).view(np.float32)
    rows[4, :3] = np.nan
    rows[5, 0] = -0.0
    path = file_of(tmp_path, rows)
    before = path.read_bytes()
    cloud = read(path)
    write(cloud, path)
    assert path.read_bytes() == before
    write(cloud[[7, 3]], path)
    assert path.read_bytes() == rows[[7, 3]].tobytes()


def test_moved_points_are_rounded_to_float32(tmp_path: Path) -> None:
    cloud = read(file_of(tmp_path, scan()))
    moved = cloud.positions + 0.01 / 3
    write(cloud.with_positions(moved), tmp_path / "moved.bin")
    error = np.abs(read(tmp_path / "moved.bin").positions - moved).max()
    assert 0 < error <= kitti.precision(cloud.with_positions(moved)) < 1e-5
    assert kitti.precision(cloud) == 0


@pytest.mark.parametrize("name", ["intensity", "reflectance", "i"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i8", ">u2", "?"])
def test_intensities_by_any_name_and_type(tmp_path: Path, name: str, dtype: str) -> None:
    values = np.array([0, 1, 1], dtype=dtype)
    cloud = PointCloud(np.eye(3), {"label": np.arange(3), name: values})
    assert kitti.losses(cloud) == ("attribute 'label'",)
    write(cloud, tmp_path / "a.bin")
    assert read(tmp_path / "a.bin").attributes["intensity"].tolist() == [0, 1, 1]


def test_the_likeliest_intensity_is_taken(tmp_path: Path) -> None:
    cloud = PointCloud(
        np.eye(3),
        {
            "i": np.array([7, 7, 7]),
            "intensity": np.ones((3, 2)),
            "reflectance": np.array([[0.1], [0.2], [0.3]]),
            "red": np.arange(3),
        },
    )
    assert kitti.losses(cloud) == ("attribute 'i'", "attribute 'intensity'", "attribute 'red'")
    write(cloud, tmp_path / "a.bin")
    got = read(tmp_path / "a.bin").attributes["intensity"]
    assert np.array_equal(got, np.array([0.1, 0.2, 0.3], np.float32))


def test_without_intensities_there_are_zeros(tmp_path: Path) -> None:
    cloud = PointCloud(np.eye(3), {"intensity": np.array(["a", "b", "c"])})
    assert kitti.losses(cloud) == ("attribute 'intensity'",)
    write(cloud, tmp_path / "a.bin")
    assert read(tmp_path / "a.bin").attributes["intensity"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "values", [np.array([2**24 + 1]), np.array([1e39]), np.array([2**64 - 1], np.uint64)]
)
def test_intensities_that_would_change_are_refused(tmp_path: Path, values: Any) -> None:
    with pytest.raises(FileFormatError, match="'i' has numbers that float32 does not hold"):
        write(PointCloud(np.zeros((1, 3)), {"i": values}), tmp_path / "a.bin")
    assert list(tmp_path.iterdir()) == []


UTM = np.random.default_rng(1).random((100, 3)) * [1000, 1000, 50] + np.array([5e5, 5e6, 100])


@pytest.mark.parametrize("extent", [1.0, 1000.0])  # a street, a country
def test_utm_is_refused_with_a_hint(tmp_path: Path, extent: float) -> None:
    utm = (UTM - UTM.mean(axis=0)) * extent + UTM.mean(axis=0)
    with pytest.raises(FileFormatError, match=r"round these coordinates to 0\.5; write another"):
        write(PointCloud(utm), tmp_path / "a.bin")
    assert list(tmp_path.iterdir()) == []


def test_coordinates_that_float32_holds_exactly_are_not_refused(tmp_path: Path) -> None:
    write(PointCloud(np.rint(UTM)), tmp_path / "a.bin")
    assert np.array_equal(read(tmp_path / "a.bin").positions, np.rint(UTM))


def test_other_units_and_local_maps_are_fine(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for positions in (
        rng.normal(size=(100, 3)) * 1e5,  # a hall in millimetres
        rng.random((100, 3)) * 10 + 8000.0,  # a corner of a map, 8 km from its origin
    ):
        write(PointCloud(positions), tmp_path / "a.bin")
        error = np.abs(read(tmp_path / "a.bin").positions - positions).max()
        assert 0 < error <= max(1e-3, 1e-7 * np.abs(positions).max())


def test_a_coarse_file_may_stay_as_coarse_as_it_was(tmp_path: Path) -> None:
    rows = np.concatenate([UTM, np.zeros((100, 1))], axis=1)
    cloud = read(file_of(tmp_path, rows))
    moved = cloud.with_positions(cloud.positions + 0.1)
    write(moved, tmp_path / "moved.bin")
    error = np.abs(read(tmp_path / "moved.bin").positions - moved.positions).max()
    assert error <= kitti.precision(moved) == 0.5
    farther = cloud.with_positions(cloud.positions * 4)
    write(farther, tmp_path / "moved.bin")  # times a power of two, exact
    with pytest.raises(FileFormatError, match="round these coordinates to 2"):
        write(cloud.with_positions(cloud.positions * 4.1), tmp_path / "moved.bin")


FAR = np.ones((4, 4))
FAR[2, 1] = -1e10
HOLES = np.ones((5, 4))
HOLES[:3, 2] = np.inf

HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "holds no points"),
    "cut": (scan(4).tobytes()[:-1], "does not look like KITTI: 63 bytes are not rows of 16"),
    "five numbers": (np.ones((3, 5), "<f4").tobytes(), "60 bytes are not .* nuScenes"),
    "far": (FAR.astype("<f4").tobytes(), "does not look like KITTI: a coordinate is 1e"),
    "holes": (HOLES.astype("<f4").tobytes(), "3 of 5 points are not finite"),
    "wrong endianness": (scan(64).astype(">f4").tobytes(), "does not look like KITTI"),
    "doubles": (scan(64).astype("<f8").tobytes(), "does not look like KITTI"),
    "random": (np.random.default_rng(0).bytes(1600), "does not look like KITTI"),
    "png": (b"\x89PNG\r\n\x1a\n" + np.random.default_rng(1).bytes(1592), "like KITTI"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_does_not_look_like_kitti_is_refused(
    tmp_path: Path, refuse: Refuse, case: str
) -> None:
    content, message = HOSTILE[case]
    refuse(tmp_path / "hostile.bin", content, message)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (np.empty((0, 3)), "without points would be empty"),
        (np.full((3, 3), np.nan), "3 of 3 points are not finite; a KITTI file cannot"),
        (np.full((3, 3), 2e9), r"a coordinate is 2e\+09; a KITTI file cannot"),
    ],
)
def test_what_would_not_be_read_is_not_written(
    tmp_path: Path, positions: Any, message: str
) -> None:
    with pytest.raises(FileFormatError, match=message):
        write(PointCloud(positions), tmp_path / "a.bin")
    assert list(tmp_path.iterdir()) == []


@given(st.binary(max_size=80) | st.lists(st.binary(min_size=16, max_size=16)).map(b"".join))
@quick
def test_any_bytes_are_kept_or_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.bin"
    path.write_bytes(content)
    try:
        cloud = read(path)
    except FileFormatError:
        return
    write(cloud, path)
    finite = np.isfinite(cloud.positions).all(axis=1)
    rows = np.frombuffer(content, "<u4").reshape(-1, 4)
    back = np.fromfile(path, "<u4").reshape(-1, 4)
    assert np.array_equal(back[finite], rows[finite])
    assert np.array_equal(back[:, 3], rows[:, 3])

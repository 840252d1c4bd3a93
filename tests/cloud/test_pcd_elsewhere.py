"""Room `cloud`: PCD files made from other clouds, and those of pypcd4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pointmend.cloud import pcd, pcd_rows
from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

ENCODINGS = ["ascii", "binary", "binary_compressed"]


def same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))


def same_bits(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_pypcd4_wrote_it(tmp_path: Path, encoding: str) -> None:
    pypcd4 = pytest.importorskip("pypcd4")
    rng = np.random.default_rng(2)
    points = np.sort(rng.normal(size=(200, 3)).round(2).astype(np.float32), axis=0)
    stamps, rings = np.arange(200) * 0.1 + 1e9, rng.integers(0, 64, 200, dtype=np.uint16)
    names, types = ("x", "y", "z", "t", "ring"), (*[np.float32] * 3, np.float64, np.uint16)
    theirs = pypcd4.PointCloud.from_points([*points.T, stamps, rings], names, types)
    source, target = tmp_path / "in.pcd", tmp_path / "out.pcd"
    theirs.save(source, encoding=pypcd4.Encoding(encoding))
    cloud = read(source)
    if encoding != "ascii":  # there it keeps ten digits
        assert same(cloud.positions, points)
        assert same_bits(cloud.attributes["t"], stamps)
    assert np.abs(cloud.positions - points).max() < 1e-6
    assert same_bits(cloud.attributes["ring"], rings)

    write(cloud, target)
    back = pypcd4.PointCloud.from_path(target)
    assert back.metadata.data.value == encoding
    assert back.fields == names
    assert same(back.numpy(("x", "y", "z")), cloud.positions.astype(np.float32))
    assert same(back.pc_data["t"], cloud.attributes["t"])
    assert same(back.pc_data["ring"], rings)


def test_pypcd4_reads_what_came_from_elsewhere(tmp_path: Path) -> None:
    pypcd4 = pytest.importorskip("pypcd4")
    utm = np.random.default_rng(3).random((50, 3)) + np.array([5e5, 5e6, 0])
    write(PointCloud(utm, {"label": np.arange(50)}), tmp_path / "a.pcd")
    back = pypcd4.PointCloud.from_path(tmp_path / "a.pcd")
    assert same(np.stack([back.pc_data[a] for a in "xyz"], axis=1), utm)
    assert same(back.pc_data["label"], np.arange(50))


def test_clouds_from_elsewhere_are_binary_doubles(tmp_path: Path) -> None:
    target = tmp_path / "new.PCD"
    attributes = {
        "flag": np.array([True, False]),
        "half": np.array([0.5, 0.25], dtype=np.float16),
        "stamp": np.array([2**62 + 1, -1]),
        "huge": np.array([2**64 - 1, 0], dtype=np.uint64),
        "big endian": np.array([1, 2], dtype=">i2"),
        "normal": np.array([[0.0, 0.6, 0.8], [1, 0, 0]]),
        "one": np.array([[7], [8]], dtype=np.uint8),
        "long": np.array([0.1, 0.2], dtype=np.longdouble),
    }
    cloud = PointCloud(np.array([[5e5 + 1 / 3, 5e6 + 1 / 7, 0.1]] * 2), attributes)
    assert pcd.losses(cloud) == ()
    write(cloud, target)
    assert b"TYPE F F F U F I U I F U F\n" in target.read_bytes()
    assert b"SIZE 8 8 8 1 4 8 8 2 8 1 8\nTYPE" in target.read_bytes()
    assert b"COUNT 1 1 1 1 1 1 1 1 3 1 1\n" in target.read_bytes()
    assert target.read_bytes().count(b"DATA binary\n") == 1
    back = read(target)
    assert same(back.positions, cloud.positions)
    assert back.attributes["big_endian"].tolist() == [1, 2]
    assert back.attributes["one"].tolist() == [7, 8]
    for name in ("flag", "half", "stamp", "huge", "normal", "long"):
        assert same(back.attributes[name], attributes[name])


def test_what_pcd_cannot_hold_is_told_and_left_out(tmp_path: Path) -> None:
    third = np.array([1], dtype=np.longdouble) / 3
    attributes: dict[str, Any] = {
        "word": np.array(["tree"]),
        "kept": np.array([1]),
        "wave": np.array([1j]),
        "none": np.empty((1, 0)),
    }
    if third != third.astype(np.float64):  # some systems have no longer floats
        attributes["long"] = third
    cloud = PointCloud(np.zeros((1, 3)), attributes)
    lost = [name for name in attributes if name != "kept"]
    assert pcd.losses(cloud) == tuple(f"attribute '{name}'" for name in lost)
    write(cloud, tmp_path / "a.pcd")
    assert list(read(tmp_path / "a.pcd").attributes) == ["kept"]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"a b": np.array([1]), "a_b": np.array([1])}, "already taken"),
        ({"_": np.array([1])}, "already taken"),
        ({" x": np.array([1])}, "already taken"),
        ({" ": np.array([1])}, "already taken"),
    ],
)
def test_names_that_would_be_mixed_up(
    tmp_path: Path, attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(FileFormatError, match=message):
        write(PointCloud(np.zeros((1, 3)), attributes), tmp_path / "a.pcd")
    assert list(tmp_path.iterdir()) == []


def test_more_rows_than_one_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcd_rows, "_ROWS_PER_CHUNK", 7)
    cloud = PointCloud(np.arange(60.0).reshape(-1, 3), {"i": np.arange(20)})
    write(cloud, tmp_path / "a.pcd")
    assert same(read(tmp_path / "a.pcd").positions, cloud.positions)
    assert same(read(tmp_path / "a.pcd").attributes["i"], np.arange(20))

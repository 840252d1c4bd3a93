"""Room `cloud`: NumPy files keep their form, types and every array."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
CODES = ["<f4", ">f4", "<f8", ">f8", "<i2", "<u4", "<f2", "<i8"]


def same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))


def random_array(seed: int, shape: tuple[int, ...], code: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape) * 100
    dtype = np.dtype(code)
    if dtype.kind == "f":
        values[rng.random(shape) < 0.2] = np.nan
    return np.abs(values).astype(dtype)


@given(
    st.integers(0, 20), st.integers(3, 6), st.sampled_from(CODES), st.booleans(), st.integers(0, 99)
)
@quick
def test_plain_arrays_come_back(
    tmp_path: Path, count: int, width: int, code: str, fortran: bool, seed: int
) -> None:
    array = random_array(seed, (count, width), code)
    path = tmp_path / "a.npy"
    np.save(path, np.asfortranarray(array) if fortran else array)
    cloud = read(path)
    assert same(cloud.positions, array[:, :3].astype(np.float64))
    assert list(cloud.attributes) == [f"column_{i}" for i in range(3, width)]
    assert all(v.dtype.isnative for v in cloud.attributes.values())
    write(cloud, path)
    back = np.load(path, allow_pickle=False)
    assert same(back, array)
    assert back.dtype == array.dtype.newbyteorder("=")


@given(
    st.integers(0, 10),
    st.dictionaries(
        st.text("abcÅЖ 9", min_size=1, max_size=5),
        st.tuples(st.sampled_from([*CODES, "<U3", "?"]), st.sampled_from([(), (2,)])),
        max_size=3,
    ),
    st.integers(0, 99),
    st.randoms(use_true_random=False),
)
@quick
def test_records_come_back(
    tmp_path: Path,
    count: int,
    fields: dict[str, tuple[str, tuple[int, ...]]],
    seed: int,
    shuffle: Any,
) -> None:
    columns: list[tuple[str, str, tuple[int, ...]]]
    columns = [(axis, code, ()) for axis, code in zip("xyz", ["<f4", "<f8", "<i4"])]
    columns += [(name, code, shape) for name, (code, shape) in fields.items()]
    shuffle.shuffle(columns)
    records = np.zeros(count, dtype=columns)
    for i, (name, code, shape) in enumerate(columns):
        records[name] = random_array(seed + i, (count, *shape), "<i2").astype(code)
    path = tmp_path / "records.npy"
    # numpy warns that names outside latin-1 need the newest version of the format; that is meant.
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, records, version=(3, 0), allow_pickle=False)
    path.write_bytes(buffer.getvalue())
    cloud = read(path)
    for axis, name in enumerate("xyz"):
        assert same(cloud.positions[:, axis], records[name].astype(np.float64))
    assert list(cloud.attributes) == [name for name, _, _ in columns if name not in "xyz"]
    for name, values in cloud.attributes.items():
        assert values.shape == records[name].shape
        assert np.array_equal(values, records[name])
    write(cloud, path)
    back = np.load(path, allow_pickle=False)
    assert back.dtype.names == records.dtype.names
    for name in back.dtype.names:
        assert back[name].dtype == records[name].dtype.newbyteorder("=")
        assert np.array_equal(back[name], records[name])


@given(
    st.integers(1, 10),
    st.sampled_from(["points", "positions", "vertices"]),
    st.dictionaries(
        st.text("abcÅЖ /9", min_size=1, max_size=5),
        st.tuples(st.sampled_from([*CODES, "?"]), st.sampled_from([(), (2,), (4,)])),
        max_size=3,
    ),
    st.booleans(),
    st.integers(3, 5),
)
@quick
def test_archives_come_back(
    tmp_path: Path,
    count: int,
    key: str,
    fields: dict[str, tuple[str, tuple[int, ...]]],
    packed: bool,
    width: int,
) -> None:
    arrays = {
        name: random_array(i, (count, *shape), "<i2").astype(code)
        for i, (name, (code, shape)) in enumerate(fields.items())
    }
    # Only a key of the agreed names may hold more than x, y and z beside other arrays.
    arrays[key] = random_array(9, (count, 3 if key == "vertices" else width), "<f4")
    arrays["faces"] = np.arange(3 * (count + 1)).reshape(-1, 3)[:, :2]
    path = tmp_path / "a.npz"
    (np.savez_compressed if packed else np.savez)(path, **arrays)  # type: ignore[arg-type]
    cloud = read(path)
    assert same(cloud.positions, arrays[key][:, :3])
    for name in fields:
        assert same(cloud.attributes[name], arrays[name])
    assert "faces" not in cloud.attributes
    write(cloud, path)
    with np.load(path, allow_pickle=False) as back:
        assert set(back.files) == set(arrays)
        for name, array in arrays.items():
            assert back[name].dtype == array.dtype.newbyteorder("=")
            assert same(back[name], array)
    with zipfile.ZipFile(path) as archive:
        kinds = {member.compress_type for member in archive.infolist()}
    assert kinds == {zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED}


def test_utm_and_missing_points_are_exact(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    utm = rng.random((100, 3)) * 1000 + [5e5, 5e6, 100]
    utm[::7] = np.nan
    utm[3, 1] = -np.inf
    for suffix in (".npy", ".npz"):
        path = tmp_path / f"utm{suffix}"
        write(PointCloud(utm), path)
        assert same(read(path).positions, utm)
    assert np.load(tmp_path / "utm.npy").dtype == np.float64


def test_float32_stays_until_it_would_lose(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32))
    cloud = read(path)
    write(cloud.with_positions(cloud.positions + 1e-4 / 3), path)
    assert np.load(path).dtype == np.float32
    far = cloud.positions + np.array([5e5, 5e6, 0])
    write(cloud.with_positions(far), path)
    assert same(read(path).positions, far)


def test_new_attributes_make_records(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    cloud = PointCloud(np.arange(6.0).reshape(2, 3), {"t": np.array([2**62 + 1, -1])})
    write(cloud, path)
    assert np.load(path).dtype.names == ("x", "y", "z", "t")
    assert read(path).attributes["t"].tolist() == [2**62 + 1, -1]
    # A column that the array's type does not hold makes records too.
    odd = PointCloud(np.zeros((1, 3)), {"column_3": np.array([2**62 + 1])})
    write(odd, path)
    assert read(path).attributes["column_3"].tolist() == [2**62 + 1]


def test_selected_points_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, points=np.eye(3), label=np.array([1, 2, 3]), pose=np.eye(4))
    write(read(path)[[2, 0]], path)
    with np.load(path) as back:
        assert back["points"].tolist() == [[0, 0, 1], [1, 0, 0]]
        assert back["label"].tolist() == [3, 1]
        assert back["pose"].shape == (4, 4)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 2)), r"shape \(N, 3\), got \(4, 2\)"),
        (np.zeros((3, 2)), "transpose"),
        (np.zeros(3), r"got \(3,\)"),
        (np.zeros((2, 2, 3)), r"got \(2, 2, 3\)"),
        (np.zeros((2, 3), dtype=complex), "real numbers"),
        (np.array([["a", "b", "c"]]), "real numbers"),
        (np.zeros(2, dtype=[("x", "f4"), ("y", "f4")]), "no fields x, y and z"),
        (np.zeros((2, 1), dtype=[("x", "f4"), ("y", "f4"), ("z", "f4")]), "records"),
        (np.zeros(2, dtype=[("x", "f4", 2), ("y", "f4"), ("z", "f4")]), "no fields x, y"),
        (np.zeros(2, dtype=[*((a, "f4") for a in "xyz"), ("r", "f4", (2, 2))]), "shape"),
    ],
)
def test_other_shapes_are_refused(tmp_path: Path, array: Any, message: str) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(FileFormatError, match=message):
        read(tmp_path / "a.npy")


def test_pickles_are_refused(tmp_path: Path) -> None:
    objects = np.array([[1, 2, 3]], dtype=object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "a.npz", points=np.zeros((1, 3)), other=objects)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(FileFormatError, match="Python objects"):
            read(tmp_path / name)


def test_unclear_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, a=np.zeros((2, 3)), b=np.zeros((2, 3)))
    with pytest.raises(FileFormatError, match="it has: a, b"):
        read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no array")
    with pytest.raises(FileFormatError, match=r"readme\.txt"):
        read(path)
    clash = PointCloud(np.zeros((1, 3)), {"points": np.array([1])})
    with pytest.raises(FileFormatError, match="rename it"):
        write(clash, path)


def test_a_member_named_on_two_lines_is_refused_on_one(tmp_path: Path) -> None:
    path = tmp_path / "odd.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("points\nnpy", b"")
    with pytest.raises(FileFormatError, match="is not an array of its own") as refused:
        read(path)
    assert "\n" not in str(refused.value)

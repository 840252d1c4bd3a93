"""Room `cloud`: text files keep their numbers, names and layout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointmend.cloud.columns import decimal_strings
from pointmend.cloud.files import read, write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.cloud.text import TextLayout
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import Damage, ReadOrRefuse, Refuse

quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))


def read_text(folder: Path, content: str | bytes, suffix: str = ".xyz") -> PointCloud:
    path = folder / f"cloud{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(path)


def written(cloud: PointCloud, folder: Path, suffix: str = ".xyz") -> str:
    path = folder / f"written{suffix}"
    write(cloud, path)
    return path.read_text(encoding="utf-8")


@given(
    st.lists(st.tuples(st.floats(), st.floats(), st.floats()), max_size=6),
    st.dictionaries(
        st.text("abcÅЖ_ -9", min_size=1, max_size=6).filter(lambda n: n.strip() == n),
        st.sampled_from(["float64", "float32", "int64", "uint8"]),
        max_size=3,
    ),
    st.sampled_from([".xyz", ".asc", ".txt", ".csv", ".pts"]),
    st.integers(0, 2**32 - 1),
)
@quick
def test_clouds_come_back(
    tmp_path: Path,
    rows: list[tuple[float, float, float]],
    types: dict[str, str],
    suffix: str,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    shown = {name if suffix == ".csv" else "_".join(name.split()): name for name in types}
    attributes = {
        name: rng.integers(0, 256, (len(rows), 8), dtype=np.uint8).view(types[name])[:, 0]
        for name in shown.values()
    }
    cloud = PointCloud(np.array(rows, dtype=np.float64).reshape(-1, 3), attributes)
    path = tmp_path / f"a{suffix}"
    write(cloud, path)
    back = read(path)
    assert same(back.positions, cloud.positions)
    assert same(np.signbit(back.positions), np.signbit(np.nan_to_num(cloud.positions)))
    assert list(back.attributes) == list(shown)
    for name, original in shown.items():
        got = back.attributes[name].astype(attributes[original].dtype)
        assert same(got, attributes[original])
    first = path.read_bytes()
    write(back, path)
    if "float32" not in types.values():
        assert path.read_bytes() == first


@given(
    st.lists(st.lists(st.floats() | st.integers(-9, 9), min_size=5, max_size=5), min_size=1),
    st.sampled_from([" ", "\t", ",", ";", " , ", "   "]),
    st.sampled_from(["", "t x y z q", "# t x y z q", "//t x y z q", "x y z a b"]),
)
@quick
def test_reading_against_python(
    tmp_path: Path, rows: list[list[float]], delimiter: str, header: str
) -> None:
    names = header.lstrip("#/ ").split()
    lines = [header.replace(" ", delimiter) if not header.startswith("#") else header]
    lines += [delimiter.join(map(repr, row)) for row in rows]
    cloud = read_text(tmp_path, "\n".join(lines))
    table = np.array(rows, dtype=np.float64)
    first = names.index("x") if names else 0
    assert same(cloud.positions, table[:, first : first + 3])
    others = [i for i in range(5) if not first <= i < first + 3]
    wanted = [names[i] if names else f"column_{i}" for i in others]
    assert list(cloud.attributes) == wanted
    for name, i in zip(wanted, others):
        assert same(cloud.attributes[name], table[:, i])
        whole = all(isinstance(row[i], int) for row in rows)
        assert cloud.attributes[name].dtype == (np.int64 if whole else np.float64)


def test_plain_xyz_is_plain_xyz(tmp_path: Path) -> None:
    text = "-13.292464 -112.53682 51.13999\n1e-07 nan inf\n"
    cloud = read_text(tmp_path, text)
    assert cloud.attributes == {}
    assert written(cloud, tmp_path) == text


def test_layout_is_kept(tmp_path: Path) -> None:
    text = "# scanned in May\n# x;y;intensity;z\n1.5;2.5;7;3.5\n4.5;5.5;8;6.5\n"
    cloud = read_text(tmp_path, text, ".txt")
    assert cloud.positions.tolist() == [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]]
    assert cloud.attributes["intensity"].tolist() == [7, 8]
    assert written(cloud, tmp_path, ".txt") == text
    added = written(cloud.with_attribute("moved", [0.5, 0.25]), tmp_path, ".txt")
    assert added.splitlines()[1:3] == ["# x;y;intensity;z;moved", "1.5;2.5;7;3.5;0.5"]


def test_another_suffix_gets_its_own_layout(tmp_path: Path) -> None:
    cloud = read_text(tmp_path, "X,Y,Z,scan angle\n1,2,3,-4\n", ".csv")
    assert written(cloud, tmp_path, ".csv") == "X,Y,Z,scan angle\n1.0,2.0,3.0,-4\n"
    assert written(cloud, tmp_path, ".xyz") == "# x y z scan_angle\n1.0 2.0 3.0 -4\n"


def test_names_are_written_where_they_would_be_lost(tmp_path: Path) -> None:
    cloud = read_text(tmp_path, "1 2 3 4 5\n")
    assert written(cloud, tmp_path) == "1.0 2.0 3.0 4 5\n"
    fewer = PointCloud(cloud.positions, {"column_4": cloud.attributes["column_4"]}, cloud.metadata)
    assert written(fewer, tmp_path) == "# x y z column_4\n1.0 2.0 3.0 5\n"
    assert written(PointCloud(np.empty((0, 3))), tmp_path) == "# x y z\n"
    assert len(read(tmp_path / "written.xyz")) == 0


def test_wide_attributes_become_columns(tmp_path: Path) -> None:
    cloud = PointCloud(np.zeros((1, 3)), {"n": np.array([[0.5, 0.25]])})
    assert written(cloud, tmp_path, ".csv") == "x,y,z,n_0,n_1\n0.0,0.0,0.0,0.5,0.25\n"


def test_long_integers_are_exact_and_late_decimals_are_seen(tmp_path: Path) -> None:
    stamp = 1_700_000_000_123_456_789
    cloud = read_text(tmp_path, f"x y z t q\n1 2 3 {stamp} 1\n1 2 3 {stamp + 1} 2.5\n")
    assert cloud.attributes["t"].tolist() == [stamp, stamp + 1]
    assert cloud.attributes["q"].tolist() == [1.0, 2.5]


def test_utm_is_exact(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    utm = rng.random((500, 3)) * [1000, 1000, 50] + [5e5, 5e6, 100]
    write(PointCloud(utm), tmp_path / "utm.xyz")
    assert same(read(tmp_path / "utm.xyz").positions, utm)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf1 2 3\n4 5 6",
        b"1 2 3\r\n4 5 6\r\n",
        b"1 2 3\r4 5 6\r",
        b"\n  \n1 2 3\n\n4 5 6  # Stra\xdfe\n\n",
        b"# Stra\xdfe\n1 2 3\n# between\n4 5 6\n",
        b'"x","y","z"\n1,2,3\n4 , 5 , 6\n',
        b"\xef\xbb\xbfx y z\n1 2 3\n4 5 6",
    ],
)
def test_odd_but_clear_files(tmp_path: Path, content: bytes) -> None:
    assert read_text(tmp_path, content).positions.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no points"),
        ("# only a comment\n", "no points"),
        ("1 2 3\n4 5\n", "line 2 has 2 values where 3"),
        ("# c\n\n1 2 3\n1 2 3\n4 5 6 7\n", "line 5 has 4 values where 3"),
        ("1 2 3\n4 tree 6\n", "line 2 has 'tree'"),
        ("1 tree 3\n4 5 6\n", "line 1 has 'tree'"),
        ("1,2,3\n4,,6\n", "line 2 has ''"),
        ("1;2;3\n4;5,5;6\n", "decimals with a point"),
        ("1 2\n3 4\n", "line 1 has 2 values; x, y, z"),
        ("a b c\n1 2 3\n", "names no x, y and z: a, b, c"),
        ("x y z\n1 2 3 4\n", "names 3 columns, line 2 has 4"),
        ("x y z a a\n1 2 3 4 5\n", "'a' twice"),
        ("1 2 1_0\n", "line 1 has '1_0'"),
        ("1 2 3\n1 2 ١\n", "line 2 has"),
        (b"\xff\xfe1\x00 \x002\x00", "UTF-16"),
        (b"1 2 3\n\x00\x01\x02", "binary"),
        (b"\x89PNG\r\n\x1a\n\xff\xfa", "line 2|header|values|no points"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(FileFormatError, match=message) as caught:
        read_text(tmp_path, content)
    assert "\n" not in str(caught.value)


def test_words_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="real numbers only"):
        write(PointCloud(np.zeros((1, 3)), {"a": np.array(["b"])}), tmp_path / "a.csv")
    clash = PointCloud(np.zeros((1, 3)), {"a,b": np.array([1]), "a_b": np.array([1])})
    with pytest.raises(FileFormatError, match="already taken"):
        write(clash, tmp_path / "a.csv")


@given(st.lists(st.floats(), max_size=20), st.lists(st.floats(width=32), max_size=20))
@quick
def test_decimals_are_the_shortest_that_come_back(double: list[float], single: list[float]) -> None:
    assert decimal_strings(np.array(double, dtype=np.float64)) == [repr(v) for v in double]
    texts = decimal_strings(np.array(single, dtype=np.float32))
    assert same(
        np.array(list(map(float, texts)), dtype=np.float32), np.array(single, dtype=np.float32)
    )
    for text, value in zip(texts, single):
        assert len(text) <= len(f"{value:.9e}")
    assert decimal_strings(np.array([True, False])) == ["1", "0"]
    assert decimal_strings(np.array([2**64 - 1], dtype=np.uint64)) == [str(2**64 - 1)]


def test_more_rows_than_one_chunk(tmp_path: Path) -> None:
    count = 70_000
    cloud = PointCloud(np.arange(3.0 * count).reshape(-1, 3), {"i": np.arange(count)})
    write(cloud, tmp_path / "many.csv")
    back = read(tmp_path / "many.csv")
    assert same(back.positions, cloud.positions)
    assert same(back.attributes["i"], cloud.attributes["i"])
    assert isinstance(back.metadata["text"], TextLayout)


def test_asc_is_as_xyz(tmp_path: Path) -> None:
    text = "-13.292464 -112.53682 51.13999 7\n1e-07 nan inf 8\n"
    cloud = read_text(tmp_path, text, ".asc")
    assert cloud.attributes["column_3"].tolist() == [7, 8]
    assert written(cloud, tmp_path, ".asc") == text
    assert written(cloud, tmp_path, ".xyz") == text


PTS = "2\n1.25 2.5 3.75 -2048 255 0 7\n4.5 5.5 6.5 2047 1 2 3\n"


@pytest.mark.parametrize("counted", [True, False])
def test_pts_with_all_it_can_have(tmp_path: Path, counted: bool) -> None:
    text = PTS if counted else PTS[2:]
    cloud = read_text(tmp_path, text, ".pts")
    assert cloud.positions.tolist() == [[1.25, 2.5, 3.75], [4.5, 5.5, 6.5]]
    assert list(cloud.attributes) == ["intensity", "red", "green", "blue"]
    assert cloud.attributes["intensity"].tolist() == [-2048, 2047]
    assert cloud.attributes["red"].tolist() == [255, 1]
    assert cloud.attributes["blue"].dtype == np.uint8
    assert written(cloud, tmp_path, ".pts") == text
    one = "1\n4.5 5.5 6.5 2047 1 2 3\n"
    assert written(cloud[1], tmp_path, ".pts") == (one if counted else one[2:])
    assert written(cloud, tmp_path, ".xyz").startswith("# x y z intensity red green blue\n")


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ("1.5 2.5 3.5", []),
        ("1.5 2.5 3.5 0.25", ["intensity"]),
        ("1.5 2.5 3.5 1 2 255", ["red", "green", "blue"]),
        ("1.5 2.5 3.5 1 2 256", ["column_3", "column_4", "column_5"]),
        ("1.5 2.5 3.5 0.1 0.2 0.3", ["column_3", "column_4", "column_5"]),
        ("1.5 2.5 3.5 9 1 -2 3", ["column_3", "column_4", "column_5", "column_6"]),
        ("1.5 2.5 3.5 1 2", ["column_3", "column_4"]),
    ],
)
def test_columns_of_pts_by_their_number(tmp_path: Path, row: str, names: list[str]) -> None:
    text = f"1\n{row}\n"
    cloud = read_text(tmp_path, text, ".pts")
    assert list(cloud.attributes) == names
    assert written(cloud, tmp_path, ".pts") == text


def test_pts_from_elsewhere(tmp_path: Path) -> None:
    colours = {name: np.array([i], np.uint8) for i, name in enumerate(["blue", "red", "green"])}
    cloud = PointCloud(
        np.array([[5e5 + 1 / 3, 0.5, 0.25]]), {**colours, "intensity": np.array([7])}
    )
    assert written(cloud, tmp_path, ".pts") == "1\n500000.3333333333 0.5 0.25 7 1 2 0\n"
    # What the bare columns would not say is named.
    deep = cloud.with_attribute("red", np.array([300]))
    assert written(deep, tmp_path, ".pts").splitlines()[1] == "# x y z intensity red green blue"
    labelled = cloud.with_attribute("label", np.array([4]))
    assert written(labelled, tmp_path, ".pts").splitlines()[:2] == [
        "1",
        "# x y z blue red green intensity label",
    ]
    for wanted in (cloud, deep, labelled):
        write(wanted, tmp_path / "a.pts")
        back = read(tmp_path / "a.pts")
        assert same(back.positions, wanted.positions)
        assert set(back.attributes) == set(wanted.attributes)
        assert all(same(back.attributes[name], v) for name, v in wanted.attributes.items())


@pytest.mark.parametrize("attributes", [{}, {"a": np.empty(0)}])
def test_empty_pts(tmp_path: Path, attributes: dict[str, Any]) -> None:
    write(PointCloud(np.empty((0, 3)), attributes), tmp_path / "a.pts")
    assert (tmp_path / "a.pts").read_text().startswith("0\n# x y z")
    back = read(tmp_path / "a.pts")
    assert len(back) == 0
    assert list(back.attributes) == list(attributes)
    assert len(read_text(tmp_path, "0\n", ".pts")) == 0
    assert len(read_text(tmp_path, "0", ".pts")) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no points"),
        ("5\n", "says 5 points, but 0 rows follow"),
        ("3\n1 2 3\n4 5 6\n", "first line says 3 points, but 2 rows follow"),
        ("1\n1 2 3\n4 5 6\n", "first line says 1 points, but 2 rows follow"),
        (f"{10**12}\n1 2 3\n", "says 1000000000000 points"),
        ("9" * 5000 + "\n1 2 3\n", "line 1 has 1 values"),
        ("-2\n1 2 3\n4 5 6\n", "line 1 has 1 values"),
        ("2\n3\n1 2 3\n4 5 6\n", "line 2 has 1 values"),
        ("2\n1 2 3\n4 5\n", "line 3 has 2 values where 3"),
        ("2\n1 2 3\n4 5 6\n1\n7 8 9\n", "line 4 begins another scan; split it"),
        (b"2\n1 2 3\n\x00", "binary"),
    ],
)
def test_what_is_wrong_with_pts_is_named(
    tmp_path: Path, refuse: Refuse, content: str | bytes, message: str
) -> None:
    raw = content if isinstance(content, bytes) else content.encode()
    refuse(tmp_path / "cloud.pts", raw, message)


def test_only_pts_has_a_count(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="line 1 has 1 values"):
        read_text(tmp_path, PTS, ".xyz")


@given(data=st.data())
@quick
def test_damaged_pts_is_read_or_refused(
    tmp_path: Path, damaged: Damage, read_or_refuse: ReadOrRefuse, data: st.DataObject
) -> None:
    cloud = read_or_refuse(tmp_path / "cloud.pts", damaged(data, PTS.encode()))
    if cloud is not None:
        write(cloud, tmp_path / "back.pts")
        back = read(tmp_path / "back.pts")
        assert same(back.positions, cloud.positions)
        assert list(back.attributes) == list(cloud.attributes)

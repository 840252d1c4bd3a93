"""Room `cloud`: points, attributes and metadata stay together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointmend.cloud.point_cloud import PerPoint, PointCloud
from pointmend.errors import InputError


class Labels(PerPoint):
    def __init__(self, words: list[str]) -> None:
        self.words = words

    def __len__(self) -> int:
        return len(self.words)

    def take(self, index: np.ndarray[Any, np.dtype[np.intp]]) -> Labels:
        return Labels([self.words[i] for i in index])


def cloud_of(count: int) -> PointCloud:
    numbers = np.arange(count)
    return PointCloud(
        np.stack([numbers, numbers * 10, numbers * 100], axis=1).astype(np.float64),
        {"id": numbers.astype(np.uint16), "pair": np.stack([numbers, -numbers], axis=1)},
        {"labels": Labels([f"p{i}" for i in numbers]), "sensor": "hand-held"},
    )


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_selection_keeps_everything_aligned(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    cloud = cloud_of(count)
    numbers = st.integers(-count, count - 1)
    index: Any = data.draw(
        st.one_of(
            numbers,
            st.lists(numbers, max_size=8),
            st.slices(count),
            st.lists(st.booleans(), min_size=count, max_size=count),
            st.lists(st.booleans(), min_size=count, max_size=count).map(np.array),
        )
    )
    if isinstance(index, slice):
        naive = list(range(count))[index]
    elif isinstance(index, int):
        naive = [index % count]
    elif any(isinstance(i, bool | np.bool_) for i in index):
        naive = [i for i, keep in enumerate(index) if keep]
    else:
        naive = [i % count for i in index]
    part = cloud[index]
    assert len(part) == len(naive)
    for row, i in enumerate(naive):
        assert part.positions[row].tolist() == [i, i * 10, i * 100]
        assert part.attributes["id"][row] == i
        assert part.attributes["pair"][row].tolist() == [i, -i]
    labels = part.metadata["labels"]
    assert isinstance(labels, Labels)
    assert labels.words == [f"p{i}" for i in naive]
    assert part.metadata["sensor"] == "hand-held"
    assert part.attributes["id"].dtype == np.uint16


def test_positions_become_float64_and_keep_nan() -> None:
    cloud = PointCloud(np.array([[1, 2, 3], [np.nan, np.inf, -0.0]], dtype=np.float32))
    assert cloud.positions.dtype == np.float64
    assert np.isnan(cloud.positions[1, 0])
    assert np.isinf(cloud.positions[1, 1])


def test_with_positions_keeps_the_rest() -> None:
    cloud = cloud_of(4)
    moved = cloud.with_positions(cloud.positions + 1)
    assert np.array_equal(moved.positions, cloud.positions + 1)
    assert moved.attributes.keys() == cloud.attributes.keys()
    assert moved.metadata["labels"] is cloud.metadata["labels"]
    assert cloud.positions[0, 0] == 0


def test_with_attribute_adds_and_replaces_without_touching_the_original() -> None:
    cloud = cloud_of(3)
    more = cloud.with_attribute("new", [1.0, 2.0, 3.0]).with_attribute("id", [7, 8, 9])
    assert list(more.attributes) == ["id", "pair", "new"]
    assert more.attributes["id"].tolist() == [7, 8, 9]
    assert list(cloud.attributes) == ["id", "pair"]


def test_bounds_ignore_what_is_not_finite() -> None:
    cloud = PointCloud(np.array([[np.nan, 1, np.nan], [2, np.inf, np.nan], [5, -3, -np.inf]]))
    low, high = cloud.bounds()
    assert low[:2].tolist() == [2, -3]
    assert high[:2].tolist() == [5, 1]
    assert np.isnan(low[2])
    assert np.isnan(high[2])
    assert np.isnan(PointCloud(np.empty((0, 3))).bounds()[0]).all()


def test_iteration_ends() -> None:
    assert [point.positions[0, 0] for point in cloud_of(3)] == [0, 1, 2]  # type: ignore[attr-defined]


def test_repr_is_short() -> None:
    assert repr(cloud_of(5)) == "PointCloud(5 points, attributes: id uint16, pair int64[2])"


@pytest.mark.parametrize(
    ("positions", "attributes", "message"),
    [
        (np.zeros((4, 2)), {}, r"shape \(N, 3\), got \(4, 2\)"),
        (np.zeros(3), {}, r"got \(3,\)"),
        (np.array([["a", "b", "c"]]), {}, "real numbers"),
        (np.zeros((1, 3), dtype=complex), {}, "real numbers"),
        (np.zeros((4, 3)), {"a": np.zeros(3)}, r"\(4,\) or \(4, c\), got \(3,\)"),
        (np.zeros((4, 3)), {"a": np.zeros((4, 1, 1))}, r"got \(4, 1, 1\)"),
        (np.zeros((4, 3)), {"x": np.zeros(4)}, "hide a coordinate"),
        (np.zeros((4, 3)), {"": np.zeros(4)}, "printable"),
        (np.zeros((4, 3)), {"a\nb": np.zeros(4)}, "printable"),
        (np.zeros((1, 3)), {"a": np.array([object()])}, "plain array"),
    ],
)
def test_what_does_not_fit_is_refused(positions: Any, attributes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PointCloud(positions, attributes)


def test_wrong_selections_are_refused() -> None:
    cloud = cloud_of(4)
    with pytest.raises(InputError, match=r"mask has shape \(3,\), the cloud needs \(4,\)"):
        cloud[np.array([True, False, True])]
    with pytest.raises(InputError, match=r"got shape \(1, 2\)"):
        cloud[np.array([[0, 1]])]
    with pytest.raises(InputError, match="float64"):
        cloud[np.array([0.5])]
    with pytest.raises(IndexError):
        cloud[4]
    with pytest.raises(InputError, match=r"new positions have shape \(3, 3\).*\(4, 3\)"):
        cloud.with_positions(np.zeros((3, 3)))
    with pytest.raises(InputError, match="4 points, this one has 2"):
        PointCloud(np.zeros((2, 3)), {}, cloud.metadata)

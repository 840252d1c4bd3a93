import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.viewer.thinning import Place, shown_rows


def test_small_clouds_are_shown_whole_but_for_what_is_not_finite() -> None:
    points = np.random.default_rng(0).random((10, 3))
    points[3, 1] = np.nan
    points[7, 0] = np.inf
    assert shown_rows(points).tolist() == [0, 1, 2, 4, 5, 6, 8, 9]
    assert shown_rows(np.zeros((0, 3))).tolist() == []


def test_large_clouds_are_thinned_evenly_and_always_alike() -> None:
    points = np.random.default_rng(0).random((5000, 3))
    points[::2] = np.nan
    rows = shown_rows(points, limit=1000)
    assert len(rows) == 1000
    assert (np.diff(rows) > 0).all()
    assert (rows % 2 == 1).all()
    assert np.array_equal(rows, shown_rows(points, limit=1000))
    per_tenth = np.bincount(rows // 500, minlength=10)
    assert per_tenth.min() > 70


def test_georeferenced_millimetres_reach_the_stage() -> None:
    points = np.random.default_rng(0).random((1000, 3)) + np.array([5e5, 5e6, 0.0])
    moved = points + np.array([0.001, 0.0, 0.0])
    place = Place.around(points)
    way = (place.on_stage(moved) - place.on_stage(points)).astype(float) * place.radius
    assert way[:, 0] == pytest.approx(0.001, rel=0.01)
    assert np.abs(place.on_stage(points)).max() < 1.1


def test_stray_points_do_not_shrink_the_rest() -> None:
    points = np.random.default_rng(0).random((10_000, 3))
    points[5] = 1e9
    stage = Place.around(points).on_stage(points)
    assert np.ptp(np.delete(stage, 5, axis=0), axis=0).min() > 0.5
    assert np.isfinite(stage).all()


@pytest.mark.parametrize(
    "points", [np.zeros((0, 3)), np.full((1, 3), 7.0), np.array([[-1.7e308] * 3, [1.7e308] * 3])]
)
def test_strange_clouds_have_a_place(points: NDArray[np.float64]) -> None:
    with np.errstate(all="ignore"):
        assert np.isfinite(Place.around(points).on_stage(points)).all()

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointmend.geometry.tiles import split_evenly, tiles_for


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_every_point_lies_in_the_box_of_its_tile_and_in_no_other(
    seed: int, count: int, tiles: int
) -> None:
    points = np.random.default_rng(seed).normal(size=(count, 3))
    tiling = split_evenly(points, tiles)
    tile = tiling.tile_of(points)
    low, high = tiling.boxes[tile, 0], tiling.boxes[tile, 1]
    assert ((points >= low) & (points < high)).all()
    inside = [((points >= b[0]) & (points < b[1])).all(axis=1) for b in tiling.boxes]
    assert (np.sum(inside, axis=0) == 1).all()


@pytest.mark.parametrize("tiles", [1, 2, 7, 16])
def test_tiles_hold_equal_parts(tiles: int) -> None:
    points = np.random.default_rng(0).exponential(size=(8000, 3))
    tiling = split_evenly(points, tiles)
    counts = np.bincount(tiling.tile_of(points), minlength=len(tiling))
    assert len(tiling) == tiles
    assert counts.max() - counts.min() <= 2


def test_coinciding_points_are_not_cut() -> None:
    assert len(split_evenly(np.zeros((100, 3)), 8)) == 1
    assert len(split_evenly(np.zeros((0, 3)), 8)) == 1
    two = np.repeat(np.eye(3)[:2], 50, axis=0)
    assert len(split_evenly(two, 8)) == 2


def test_points_outside_the_sample_have_a_tile() -> None:
    tiling = split_evenly(np.random.default_rng(0).uniform(size=(100, 3)), 5)
    assert set(tiling.tile_of(np.array([[1e9, 0, 0], [-1e9, 0, 0]]))) <= set(range(5))


def test_distances_to_boxes() -> None:
    points = np.random.default_rng(0).uniform(size=(400, 3))
    tiling = split_evenly(points, 8)
    for tile, (low, high) in enumerate(tiling.boxes):
        nearest = np.clip(points, low, high)
        expected = np.linalg.norm(points - nearest, axis=1)
        assert np.allclose(tiling.distance(tile, points), expected)
        gaps = tiling.gaps(tile)
        assert gaps[tile] == 0.0
        # A box is never farther than the nearest of its points.
        for other in range(8):
            inside = points[tiling.tile_of(points) == other]
            assert gaps[other] <= tiling.distance(tile, inside).min() + 1e-12


@pytest.mark.parametrize(("points", "size", "tiles"), [(0, 10, 1), (10, 10, 1), (11, 10, 2)])
def test_number_of_tiles(points: int, size: int, tiles: int) -> None:
    assert tiles_for(points, size) == tiles

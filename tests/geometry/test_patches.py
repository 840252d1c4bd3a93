import numpy as np
import pytest

from pointmend.geometry.farthest import farthest_points
from pointmend.geometry.patches import cover_by_patches


def naive_farthest(points: np.ndarray, count: int) -> list[int]:
    chosen = [int(np.linalg.norm(points - points.mean(axis=0), axis=1).argmax())]
    while len(chosen) < count:
        gaps = np.linalg.norm(points[:, None] - points[chosen], axis=2).min(axis=1)
        chosen.append(int(gaps.argmax()))
    return chosen


@pytest.mark.parametrize("seed", range(3))
def test_farthest_points_agree_with_the_naive_search(seed: int) -> None:
    points = np.random.default_rng(seed).random((80, 3))
    assert farthest_points(points, 15).tolist() == naive_farthest(points, 15)


def test_farthest_points_stop_when_every_place_is_reached() -> None:
    assert len(farthest_points(np.repeat(np.eye(3), 5, axis=0), 10)) == 3
    assert len(farthest_points(np.zeros((1, 3)), 10)) == 1


@pytest.mark.parametrize(("count", "size"), [(700, 100), (100, 100), (30, 100), (1, 100)])
def test_every_point_is_owned_by_its_nearest_patch_that_holds_it(count: int, size: int) -> None:
    points = np.random.default_rng(0).random((count, 3))
    patches = cover_by_patches(points, size, overlap=3.0)
    assert patches.size == min(size, count)
    for i in range(count):
        holding = np.flatnonzero((patches.members == i).any(axis=1))
        gaps = np.linalg.norm(patches.centres[holding] - points[i], axis=1)
        owner = patches.owner[i]
        assert owner in holding
        assert np.linalg.norm(patches.centres[owner] - points[i]) == pytest.approx(gaps.min())
        assert patches.members[owner, patches.place[i]] == i


def test_owned_places_name_every_point_once() -> None:
    points = np.random.default_rng(1).random((500, 3))
    patches = cover_by_patches(points, 80, overlap=4.0)
    named = np.concatenate(
        [row[place] for row, place in zip(patches.members, patches.owned, strict=True)]
    )
    assert sorted(named) == list(range(500))


def test_wild_density_is_still_covered() -> None:
    rng = np.random.default_rng(2)
    points = np.vstack([1e-4 * rng.random((3000, 3)), 5 + 100 * rng.random((300, 3))])
    patches = cover_by_patches(points, 50, overlap=2.0)
    assert set(patches.members.reshape(-1)) == set(range(3300))


def test_stitching_takes_each_point_from_its_owner() -> None:
    points = np.random.default_rng(3).random((300, 3))
    patches = cover_by_patches(points, 60, overlap=3.0)
    copies = points[patches.members].reshape(-1, 3)
    assert np.array_equal(patches.stitch(copies), points)
    marked = copies.reshape(*patches.members.shape, 3).copy()
    marked[...] = np.arange(len(patches.members))[:, None, None]
    assert np.array_equal(patches.stitch(marked.reshape(-1, 3))[:, 0], patches.owner)


def test_patches_apart_own_all_their_points() -> None:
    points = np.random.default_rng(4).random((200, 3))
    patches = cover_by_patches(points, 50, overlap=3.0)
    apart = patches.apart()
    assert np.array_equal(
        apart.stitch(np.tile(points[:1], (apart.members.size, 1))).shape, (apart.members.size, 3)
    )
    assert all(np.array_equal(place, np.arange(50)) for place in apart.owned)


def test_patches_that_decide_about_the_first_points_only() -> None:
    points = np.random.default_rng(5).standard_normal((300, 3))
    patches = cover_by_patches(points, 40, 3.0)
    few = patches.deciding_first(25)
    found = {
        int(few.members[patch, place])
        for patch, places in enumerate(few.owned)
        for place in places.tolist()
    }
    assert found == set(range(25))
    assert len(few.members) < len(patches.members)
    assert all(len(places) for places in few.owned)
    for point in range(25):
        assert np.array_equal(few.centres[few.owner[point]], patches.centres[patches.owner[point]])

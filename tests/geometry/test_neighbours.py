import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pointmend.geometry import neighbours
from pointmend.geometry.neighbours import nearest, neighbour_table, typical_spacing


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_nearest_agrees_with_sorting_all_distances(count: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, queries = rng.random((count, 3)), rng.random((7, 3))
    naive = np.argsort(((queries[:, None] - points) ** 2).sum(-1), axis=1)[:, :k]
    found = nearest(points, queries, k)
    assert found.shape == (7, k)
    assert np.array_equal(found[:, : min(k, count)], naive)
    assert np.all(found[:, min(k, count) :] == naive[:, -1:])


def test_tables_stay_inside_their_patch_and_start_with_the_point_itself() -> None:
    positions = torch.rand(3 * 50, 3, generator=torch.Generator().manual_seed(0))
    table = neighbour_table(positions, 50, 8)
    assert torch.equal(table[:, 0], torch.arange(150))
    assert torch.equal(table // 50, (torch.arange(150) // 50)[:, None].expand(-1, 8))
    for patch in range(3):
        part = positions[50 * patch : 50 * patch + 50]
        expected = torch.cdist(part, part).argsort(dim=1)[:, :8] + 50 * patch
        assert torch.equal(table[50 * patch : 50 * patch + 50], expected)


def test_the_table_for_other_devices_is_the_same() -> None:
    positions = torch.rand(2 * 40, 3, generator=torch.Generator().manual_seed(1))
    dense = neighbours._neighbour_table_dense(positions.reshape(2, 40, 3), 6)
    assert torch.equal(dense, neighbour_table(positions, 40, 6))


def test_more_neighbours_than_points_repeat_the_last() -> None:
    positions = torch.rand(5, 3, generator=torch.Generator().manual_seed(2))
    table = neighbour_table(positions, 5, 9)
    assert table.shape == (5, 9)
    assert torch.equal(table[:, 5:], table[:, 4:5].expand(-1, 4))
    dense = neighbours._neighbour_table_dense(positions.reshape(1, 5, 3), 9)
    assert torch.equal(dense, table)


def test_coinciding_points_still_know_themselves() -> None:
    table = neighbour_table(torch.zeros(30, 3), 30, 4)
    assert torch.equal(table[:, 0], torch.arange(30))
    assert all(len(set(row.tolist())) == 4 for row in table)


def test_typical_spacing_of_a_grid_is_its_pitch_whatever_one_outlier_does() -> None:
    grid = np.stack(np.meshgrid(*[np.arange(12) * 0.25] * 3), axis=-1).reshape(-1, 3)
    assert typical_spacing(grid) == 0.25
    assert typical_spacing(np.vstack([grid, [1e9, 0, 0]])) == 0.25
    assert typical_spacing(grid[:1]) == 0.0

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pointmend.geometry.ordering import BITS, distinct_points, morton_order


def naive_code(cell: tuple[int, int, int]) -> int:
    bits = ""
    for bit in reversed(range(BITS)):
        for axis in (2, 1, 0):
            bits += str((cell[axis] >> bit) & 1)
    return int(bits, 2)


def test_the_order_is_that_of_interleaved_bits() -> None:
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 2**BITS, (200, 3))
    cells[0], cells[1] = 0, 2**BITS - 1
    order = morton_order(cells.astype(np.float64))
    codes = [naive_code((int(x), int(y), int(z))) for x, y, z in cells[order]]
    assert codes == sorted(codes)


def test_neighbours_in_the_order_are_neighbours_in_space() -> None:
    points = np.random.default_rng(1).random((4000, 3))
    steps = np.linalg.norm(np.diff(points[morton_order(points)], axis=0), axis=1)
    assert steps.mean() < 0.15


@given(st.integers(0, 50), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_distinct_points_lead_back_to_all_points(count: int, grid: int, seed: int) -> None:
    points = np.random.default_rng(seed).integers(0, grid, (count, 3)).astype(np.float64)
    distinct, copies = distinct_points(points)
    assert np.array_equal(distinct[copies], points)
    assert len(np.unique(distinct, axis=0)) == len(distinct)
    shuffled = np.random.default_rng(seed).permutation(points)
    assert np.array_equal(distinct_points(shuffled)[0], distinct)


def test_points_in_one_place_have_an_order() -> None:
    assert morton_order(np.full((3, 3), 5.0)).tolist() == [0, 1, 2]

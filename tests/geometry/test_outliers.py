import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.geometry.outliers import find_outliers


def plane(count: int = 2000) -> NDArray[np.float64]:
    points = np.random.default_rng(0).uniform(size=(count, 3))
    points[:, 2] *= 0.01
    return points


@pytest.mark.parametrize("offset", [0.0, 5e6])
def test_isolated_points_are_found_and_others_not(offset: float) -> None:
    far = np.array([[0.5, 0.5, 0.4], [0.2, 0.8, -0.3], [3.0, 3.0, 0.0]])
    flagged = find_outliers(np.concatenate([plane(), far]) + offset)
    assert flagged[-3:].all()
    assert flagged[:-3].sum() <= 2


def test_sparse_regions_are_not_outliers() -> None:
    sparse = 20.0 * plane(300) + np.array([50.0, 0.0, 0.0])
    flagged = find_outliers(np.concatenate([plane(), sparse]))
    assert flagged.mean() < 0.01


def test_a_smaller_factor_flags_more() -> None:
    points = np.concatenate([plane(), [[0.5, 0.5, 0.1]]])
    counts = [find_outliers(points, factor).sum() for factor in (1.2, 1.5, 3.0, 100.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[2]
    assert counts[-1] == 0


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10])
def test_few_points(count: int) -> None:
    assert find_outliers(plane()[:count]).shape == (count,)


def test_coinciding_points_are_no_outliers() -> None:
    assert not find_outliers(np.zeros((50, 3))).any()

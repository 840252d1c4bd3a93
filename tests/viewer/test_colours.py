from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend import PointCloud
from pointmend.evaluation.figures import colour_map
from pointmend.viewer.colours import (
    full_scale,
    light,
    original_colours,
    painted,
    value_colours,
)

ROWS = np.array([2, 0])
EIGHT = np.array([[0, 51, 102], [1, 2, 3], [255, 204, 153]], dtype=np.uint8)
WANTED = EIGHT[ROWS] / 255.0


def three(values: NDArray[Any], names: tuple[str, ...] = ("red", "green", "blue")) -> PointCloud:
    return PointCloud(np.zeros((3, 3)), {n: values[:, i] for i, n in enumerate(names)})


@pytest.mark.parametrize(
    "cloud",
    [
        three(EIGHT),
        three(EIGHT.astype(np.uint16) * 257),
        three(EIGHT.astype(np.uint16)),
        three(EIGHT / 255.0),
        three(EIGHT.astype(np.float32)),
        three(EIGHT, ("r", "g", "b")),
        three(EIGHT, ("Red", "Green", "Blue")),
        PointCloud(np.zeros((3, 3)), {"rgb": EIGHT}),
        PointCloud(np.zeros((3, 3)), {"rgb": EIGHT.astype(np.uint32) @ [65536, 256, 1]}),
    ],
)
def test_colours_come_in_many_ways(cloud: PointCloud) -> None:
    if (packed := cloud.attributes.get("rgb")) is not None and packed.ndim == 1:
        cloud = cloud.with_attribute("rgb", packed.astype(np.uint32).view(np.float32))
    found = original_colours(cloud, ROWS)
    assert found == pytest.approx(WANTED, abs=1e-4)


def test_most_clouds_have_no_colours() -> None:
    cloud = PointCloud(np.zeros((3, 3)), {"red": np.zeros(3), "rgb": np.zeros(3, dtype="U4")})
    cloud = cloud.with_attribute("rgb", np.zeros(3))
    assert original_colours(cloud, ROWS) is None


def test_channels_that_are_no_numbers_do_no_harm() -> None:
    broken = np.array([[np.nan, np.inf, -5.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
    found = original_colours(three(broken), ROWS)
    assert found is not None
    assert found.min() >= 0.0
    assert found.max() <= 1.0


def test_values_are_coloured_as_in_the_reports() -> None:
    values = np.array([0.0, 0.5, 1.0, 9.0])
    assert np.array_equal(value_colours(values, 2.0), colour_map(values / 2.0))


def test_the_scale_ends_where_nearly_all_values_do() -> None:
    assert full_scale(np.arange(101.0)) == pytest.approx(98.0)
    assert full_scale(np.array([0.0] * 99 + [3.0])) == 3.0
    assert full_scale(np.zeros(5)) == 1.0
    assert full_scale(np.zeros(0)) == 1.0


def test_a_plane_is_lit_evenly_and_noise_is_seen() -> None:
    rng = np.random.default_rng(0)
    plane = np.column_stack((rng.random((500, 2)), np.zeros(500)))
    assert np.ptp(light(plane)) < 1e-6
    assert np.ptp(light(plane + 0.05 * rng.standard_normal((500, 3)))) > 0.3


def test_light_darkens_colours() -> None:
    colours = painted(np.array([[1.0, 0.5, 0.0], [1.0, 1.0, 1.0]]), np.array([1.0, 0.5]))
    assert colours.tolist() == [[255, 128, 0], [128, 128, 128]]

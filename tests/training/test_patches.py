from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.diffusion.schedule import TRAINING_SCHEDULE
from pointmend.network.config import DEFAULT, PAPER
from pointmend.training.config import TrainingConfig
from pointmend.training.patches import MORE_NOISE_IF_TOLD, OVER_TOLD, TOLD_ERROR, draw_patch
from pointmend.training.shapes import SampledSurface, Shape

Float64 = NDArray[np.float64]


def sphere_points(count: int, seed: int) -> Float64:
    x = np.random.default_rng(seed).standard_normal((count, 3))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def sphere() -> Shape:
    dense = sphere_points(60_000, 0)
    return Shape(
        "sphere", [sphere_points(4000, 1), sphere_points(8000, 2)], SampledSurface(dense, dense)
    )


def test_the_way_to_the_surface_is_along_its_normal(sphere: Shape) -> None:
    x = 1.03 * sphere_points(200, 5)
    way, normal = sphere.surface.way_from(x)
    assert np.allclose(np.linalg.norm(x + way, axis=1), 1.0, atol=1e-3)
    assert np.allclose(np.cross(way, normal), 0.0, atol=1e-12)


@pytest.mark.parametrize("network", [PAPER, DEFAULT, replace(DEFAULT, frame="patch")])
def test_a_patch_is_the_nearest_points_of_a_point_with_its_mask_first(
    sphere: Shape, network: type
) -> None:
    config = TrainingConfig(network=network, patch_points=300, mask_points=40)  # type: ignore[arg-type]
    patch = draw_patch([sphere], config, np.random.default_rng(3))
    assert patch.clean.shape == patch.noisy.shape == (300, 3)
    reach = np.linalg.norm(patch.clean, axis=1)
    assert reach[0] == pytest.approx(0.0, abs=1e-12)
    assert np.all(np.diff(reach) >= -1e-12)
    # Back in the shape's frame it lies on the sphere, so turn, scale and centre belong together.
    back = patch.clean @ patch.turn / patch.scale + patch.centre
    assert np.allclose(np.linalg.norm(back, axis=1), 1.0, atol=1e-9)
    noise = (patch.noisy - patch.clean).std()
    assert noise == pytest.approx(TRAINING_SCHEDULE.sigma_bar[patch.t], rel=0.15)


def test_a_shape_can_limit_its_noise(sphere: Shape) -> None:
    config = TrainingConfig(patch_points=20)
    quiet = replace(sphere, most_noise=0.01)
    patches = [draw_patch([quiet], config, np.random.default_rng(seed)) for seed in range(60)]
    levels = np.array([TRAINING_SCHEDULE.sigma_bar[patch.t] / patch.scale for patch in patches])
    assert 0.008 < levels.max() <= 0.0101
    assert levels.min() < 0.003
    free = [draw_patch([sphere], config, np.random.default_rng(seed)).t for seed in range(60)]
    assert max(free) > 900


def test_the_papers_target_is_the_nearest_clean_point(sphere: Shape) -> None:
    config = TrainingConfig(patch_points=200)
    patch = draw_patch([sphere], config, np.random.default_rng(4))
    gaps = np.linalg.norm(patch.noisy[:, None] - patch.clean, axis=2)
    expected = patch.clean[gaps.argmin(axis=1)] - patch.noisy
    assert np.allclose(patch.ground_truth(patch.noisy, config), expected)


def test_the_projection_leads_onto_the_surface_and_along_the_normal(sphere: Shape) -> None:
    config = TrainingConfig(network=DEFAULT, patch_points=200, target="projection")
    patch = draw_patch([sphere], config, np.random.default_rng(5))
    way = patch.ground_truth(patch.noisy, config)
    landed = (patch.noisy + way) @ patch.turn / patch.scale + patch.centre
    assert np.allclose(np.linalg.norm(landed, axis=1), 1.0, atol=2e-3)


def test_the_tangential_part_is_the_nearest_points(sphere: Shape) -> None:
    bare = TrainingConfig(network=DEFAULT, patch_points=200, target="projection")
    patch = draw_patch([sphere], bare, np.random.default_rng(6))
    x = patch.noisy[:50]
    normal_way = patch.ground_truth(x, bare)
    mixed = patch.ground_truth(x, replace(bare, tangential=1.0))
    nearest = patch.ground_truth(x, replace(bare, target="nearest"))
    shift = mixed - normal_way
    unit = normal_way / np.linalg.norm(normal_way, axis=1, keepdims=True)
    along = np.sum(nearest * unit, axis=1, keepdims=True) * unit
    assert np.allclose(shift, nearest - along, atol=1e-9)
    half = patch.ground_truth(x, replace(bare, tangential=0.5))
    assert np.allclose(half - normal_way, 0.5 * shift)


def test_times_cover_their_range(sphere: Shape) -> None:
    config = TrainingConfig(patch_points=50, t_min=900)
    rng = np.random.default_rng(7)
    times = {draw_patch([sphere], config, rng).t for _ in range(300)}
    assert min(times) >= 900
    assert max(times) <= 1000
    assert len(times) > 60


def test_ddpms_patches_shrink_with_time_and_so_does_their_truth(sphere: Shape) -> None:
    config = TrainingConfig(network=PAPER, patch_points=300, mask_points=40, t_min=1000)
    kept = draw_patch([sphere], config, np.random.default_rng(3))
    shrunk_config = replace(config, diffusion="generative")
    shrunk = draw_patch([sphere], shrunk_config, np.random.default_rng(3))
    alpha_bar = TRAINING_SCHEDULE.alpha_bar[1000]
    assert np.allclose(shrunk.clean, np.sqrt(alpha_bar) * kept.clean)
    # The same noise, in units of which the whole cloud is sqrt(alpha_bar) times as large.
    assert np.allclose(shrunk.noisy, np.sqrt(alpha_bar) * kept.noisy)
    assert np.allclose(shrunk.later(0, shrunk_config).clean, kept.clean)
    assert kept.later(0, config) is kept
    projection = replace(shrunk_config, target="projection")
    for patch in (shrunk, shrunk.later(0, shrunk_config)):
        assert np.allclose(patch.ground_truth(patch.clean, projection), 0.0, atol=2e-4)


def test_a_point_has_its_spacing_squared_for_itself(sphere: Shape) -> None:
    cloud = max(sphere.clouds, key=len)
    config, even = TrainingConfig(patch_points=400), replace(sphere, clouds=[cloud])
    patch, count = draw_patch([even], config, np.random.default_rng(8)), len(cloud)
    assert patch.spacing == pytest.approx(patch.scale * np.sqrt(4 * np.pi / count), rel=0.1)


def test_noise_is_told_nearly_as_it_is_and_in_the_first_stage_only_half_of_the_time(
    sphere: Shape,
) -> None:
    patch = draw_patch([sphere], TrainingConfig(patch_points=50), np.random.default_rng(9))
    rng = np.random.default_rng(0)
    told = np.array([patch.told_noise(3, rng) for _ in range(2000)])
    ratio = told[:, 1] / TRAINING_SCHEDULE.sigma_bar[patch.t]
    assert np.median(ratio) == pytest.approx(1.0, abs=0.02)
    assert ratio.std() == pytest.approx(TOLD_ERROR, rel=0.1)
    assert np.array_equal(told[:, 1], told[:, 2])
    known = told[:, 0] > 0.0
    assert known.mean() == pytest.approx(0.5, abs=0.05)
    assert np.array_equal(told[known, 0], told[known, 1])


def test_of_thin_walls_more_noise_is_told_than_there_is(sphere: Shape) -> None:
    patch = draw_patch([sphere], TrainingConfig(patch_points=50), np.random.default_rng(9))
    thin = replace(patch, shape=replace(sphere, most_noise=1.0))
    rng = np.random.default_rng(0)
    told = np.array([thin.told_noise(2, rng)[1] for _ in range(2000)])
    ratio = np.log(told / TRAINING_SCHEDULE.sigma_bar[patch.t])
    # The mean of a half-normal distribution.
    assert ratio.mean() == pytest.approx(np.sqrt(2.0 / np.pi) * OVER_TOLD, abs=0.01)
    assert np.quantile(ratio, 0.1) > -2.0 * TOLD_ERROR


def test_who_is_told_the_noise_learns_from_more_of_it_on_thin_walls(sphere: Shape) -> None:
    thin = replace(sphere, most_noise=0.008)
    config = TrainingConfig(network=replace(DEFAULT, told_noise=True), patch_points=50)
    patches = [draw_patch([thin], config, np.random.default_rng(seed)) for seed in range(200)]
    sigma = np.array([TRAINING_SCHEDULE.sigma_bar[patch.t] / patch.scale for patch in patches])
    assert 0.97 < sigma.max() / (MORE_NOISE_IF_TOLD * 0.008) < 1.01
    for patch, level in zip(patches, sigma):
        first = [patch.told_noise(2, np.random.default_rng(n))[0] for n in range(20)]
        # Beyond what can be told apart without knowing, it is never left out.
        assert (min(first) > 0.0) == (level > 0.008)

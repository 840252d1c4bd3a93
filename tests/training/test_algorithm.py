"""Algorithm 1 against a version written line by line, one patch and one point at a time."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from pointmend.denoising.amends import share_in
from pointmend.diffusion.schedule import TRAINING_SCHEDULE
from pointmend.errors import InputError
from pointmend.geometry.procedural import torus
from pointmend.network.config import DEFAULT, PAPER, NetworkConfig
from pointmend.network.score import ScoreNetwork
from pointmend.training.algorithm import (
    LOSS_SCALE,
    anchor_share,
    batch_losses,
    bending,
    prepare_batch,
    stage_times,
)
from pointmend.training.config import TrainingConfig
from pointmend.training.patches import draw_patch
from pointmend.training.shapes import MeshSurface, Shape

SMALL: dict[str, Any] = {"channels": 8, "hidden": 8, "layers": 1, "blocks": 1}


@pytest.fixture(scope="module")
def shapes() -> list[Shape]:
    rng = np.random.default_rng(0)
    mesh = torus()
    surface = MeshSurface.of(mesh, 20_000, rng)
    return [Shape("torus", [surface.points[:3000]], surface)]


def generators(count: int, seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, n]) for n in range(count)]


def awake(config: NetworkConfig) -> ScoreNetwork:
    torch.manual_seed(0)
    network = ScoreNetwork(config)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return network


TOLD = replace(DEFAULT, told_noise=True, told_ways=True)


@pytest.mark.parametrize("network_config", [PAPER, DEFAULT, TOLD], ids=["paper", "default", "told"])
@pytest.mark.parametrize("target", ["nearest", "projection"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"stages": 4, "followed_points": 60},
        {"stages": 3, "anchored": True},
        {"stages": 4, "followed_points": 60, "amends": 0.3},
        {"stages": 3, "detail": 2.0, "target": "projection"},
    ],
    ids=["two stages", "four stages", "anchored", "amends", "detail"],
)
def test_the_loss_is_that_of_algorithm_1(
    shapes: list[Shape], network_config: NetworkConfig, target: Any, more: dict[str, Any]
) -> None:
    config = TrainingConfig(
        network=replace(network_config, **SMALL),
        batch=3,
        patch_points=120,
        mask_points=20,
        **({"target": target} | more),
    )
    network = awake(config.network)
    batch = prepare_batch(shapes, network, config, generators(3))
    losses = batch_losses(network, batch, config)

    total = 0.0
    sigma_bar = TRAINING_SCHEDULE.sigma_bar
    led = np.arange(120)[:, None] < max(20, config.followed_points)
    for patch, times, told in zip(batch.patches, batch.times, batch.told):
        assert told.any() == config.network.told_noise
        anchor = anchor_share(patch) if config.anchored else 0.0
        # Lines 6-7.
        x_t = torch.from_numpy(patch.noisy).float()
        e_t = network.features(network.look(x_t, 120))
        x = patch.noisy
        aim = x + patch.ground_truth(x, config)
        counts = np.ones(20)
        if config.detail > 0.0:
            normals = patch.way_and_normal(x, config)[1]
            for point, near in enumerate(network.look(x_t, 120).neighbours[:20].numpy()):
                mean = np.mean([np.outer(n, n) for n in normals[near]], axis=0)
                counts[point] += config.detail * 1.5 * (1.0 - np.linalg.eigvalsh(mean)[2])
            assert counts.max() > 1.05
        for t, later, noise in zip(times, [*times[1:], 0], torch.from_numpy(told).float()):
            # Lines 10-11.
            cloud = network.look(torch.from_numpy(x).float(), 120)
            e = network.features(cloud)
            time = torch.full((120,), t / times[0])
            known = network.compared(network.spreads(network.look(x_t, 120)), noise.expand(120))
            back = torch.from_numpy(patch.noisy - x)
            ways = None if t == times[0] else network.ways(cloud, back)
            answer = network.scores(cloud, e, e_t, x_t, time, told=known, ways=ways)
            score = answer.detach().double().numpy()
            # Lines 13-14.
            truth = anchor * (aim - x) + (1 - anchor) * patch.ground_truth(x, config)
            sigma = max(sigma_bar[t], sigma_bar[config.t_min])
            weight = (1 - config.loss_lambda) / sigma + config.loss_lambda
            squares = np.sum((weight * (score - truth)[:20]) ** 2, axis=1)
            total += np.sum(counts * squares) / (3 * 20)
            # Lines 8-9: a = alpha_bar_t, b = alpha_bar_{t - Delta}, Eq. 7 as printed.
            a, b = TRAINING_SCHEDULE.alpha_bar[t], TRAINING_SCHEDULE.alpha_bar[later]
            if t > later:
                near = cloud.neighbours[:, 1:].numpy()
                share = share_in(sigma_bar[times[0]], config.amends)
                owed = share * (patch.noisy - x)[near].mean(axis=1)
                factor = 1 - np.sqrt((1 - b) * a / ((1 - a) * b))
                x = x + factor * np.where(led, score + owed, truth)
    assert float(losses.total.detach()) == pytest.approx(LOSS_SCALE * total, rel=1e-3)


def test_a_surface_bends_at_edges_and_tips_and_not_on_planes_nor_thin_walls() -> None:
    up, across, along = np.eye(3)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for sides, expected in (
        ([up] * 6, 0.0),
        ([up, -up] * 3, 0.0),
        ([up, across] * 3, 0.75),
        ([up, across, along] * 2, 1.0),
    ):
        normals = torch.from_numpy(np.stack(sides) @ turn)
        bent = bending(normals, torch.arange(6).expand(2, 6))
        assert bent.numpy() == pytest.approx([expected] * 2, abs=1e-6)


def test_points_far_apart_against_the_noise_are_anchored_and_close_ones_are_not(
    shapes: list[Shape],
) -> None:
    patch = draw_patch(shapes, TrainingConfig(patch_points=100), np.random.default_rng(0))
    schedule = TRAINING_SCHEDULE.sigma_bar
    for spacings, share in ((0.3, 1.0), (0.5, 1.0), (1.0, 0.5), (1.5, 0.0), (2.0, 0.0)):
        grown = 0.02 / (spacings * patch.spacing)
        t = int(np.abs(schedule - 0.02).argmin())
        scaled = replace(patch, clean=grown * patch.clean, t=t)
        assert anchor_share(scaled) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("stages", [2, 3, 5])
def test_times_fall_by_parts_from_the_one_drawn(stages: int) -> None:
    rng = np.random.default_rng(0)
    times = np.array([stage_times(1000, stages, rng) for _ in range(2000)])
    assert (times[:, 0] == 1000).all()
    part = 1000 / (stages - 1)
    for number in range(1, stages):
        drawn = times[:, number]
        assert drawn.max() < 1000 - (number - 1) * part
        assert drawn.min() >= np.floor(1000 - number * part)
        assert drawn.mean() == pytest.approx(1000 - (number - 0.5) * part - 0.5, abs=0.05 * part)
    assert (stage_times(1, 2, rng) == [1, 0]).all()


def test_stage_two_does_not_teach_stage_one(shapes: list[Shape]) -> None:
    """The moved points carry no gradient: only features and scores do."""
    config = TrainingConfig(
        network=replace(DEFAULT, **SMALL), target="projection", batch=2, patch_points=100
    )
    network = awake(config.network)
    batch = prepare_batch(shapes, network, config, generators(2))
    seen: list[bool] = []
    look = network.look

    def watch(positions: torch.Tensor, patch_points: int) -> Any:
        seen.append(positions.requires_grad)
        return look(positions, patch_points)

    network.look = watch  # type: ignore[method-assign]
    batch_losses(network, batch, config)
    assert seen == [False]


def test_a_patch_does_not_depend_on_its_neighbours_in_the_batch(shapes: list[Shape]) -> None:
    config = TrainingConfig(network=replace(DEFAULT, **SMALL), target="projection", patch_points=80)
    network = awake(config.network)
    whole = prepare_batch(shapes, network, config, generators(4))
    part = prepare_batch(shapes, network, config, generators(4)[2:])
    assert np.array_equal(whole.patches[2].noisy, part.patches[0].noisy)
    assert np.array_equal(whole.times[2:], part.times)
    assert np.array_equal(whole.truth[2:], part.truth)


def test_the_generative_ablation_takes_ddpms_step_between_its_stages(shapes: list[Shape]) -> None:
    config = TrainingConfig(
        network=replace(PAPER, fusion="initial", **SMALL),
        diffusion="generative",
        patch_points=90,
        mask_points=20,
    )
    network = awake(config.network)
    batch = prepare_batch(shapes, network, config, generators(1))
    clouds: list[torch.Tensor] = []
    look = network.look

    def watch(positions: torch.Tensor, patch_points: int) -> Any:
        clouds.append(positions)
        return look(positions, patch_points)

    network.look = watch  # type: ignore[method-assign]
    (patch,), ((t, later),) = batch.patches, batch.times
    fresh = copy.deepcopy(batch.generators[0]).standard_normal(patch.noisy.shape)
    batch_losses(network, batch, config)
    alpha = TRAINING_SCHEDULE.alpha_bar[t] / TRAINING_SCHEDULE.alpha_bar[later]
    beta = 1.0 - alpha
    way = batch.truth[0] * beta / (1.0 - TRAINING_SCHEDULE.alpha_bar[t])
    expected = (patch.noisy + way) / np.sqrt(alpha) + np.sqrt(beta) * fresh
    assert later > 0
    assert np.allclose(clouds[0].numpy()[20:], expected[20:], atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"stages": 1},
        {"stages": 31},
        {"diffusion": "generative", "stages": 3},
        {"diffusion": "generative", "anchored": True},
        {"detail": -1.0, "target": "projection"},
        {"detail": 1.0, "target": "nearest"},
    ],
)
def test_what_cannot_be_trained_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TrainingConfig(**settings)

"""Algorithm 1 against a version written line by line, one patch and one point at a time."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from pointmend.diffusion.schedule import TRAINING_SCHEDULE
from pointmend.geometry.procedural import torus
from pointmend.network.config import DEFAULT, PAPER, NetworkConfig
from pointmend.network.score import ScoreNetwork
from pointmend.training.algorithm import LOSS_SCALE, batch_losses, prepare_batch
from pointmend.training.config import TrainingConfig
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


@pytest.mark.parametrize("network_config", [PAPER, DEFAULT], ids=["paper", "default"])
@pytest.mark.parametrize("target", ["nearest", "projection"])
def test_the_loss_is_that_of_algorithm_1(
    shapes: list[Shape], network_config: NetworkConfig, target: Any
) -> None:
    config = TrainingConfig(
        network=replace(network_config, **SMALL),
        target=target,
        batch=3,
        patch_points=120,
        mask_points=20,
    )
    network = awake(config.network)
    batch = prepare_batch(shapes, network, config, generators(3))
    losses = batch_losses(network, batch, config)

    total = 0.0
    sigma_bar = TRAINING_SCHEDULE.sigma_bar
    for patch, delta in zip(batch.patches, batch.deltas):
        # Lines 6-7.
        x_t = torch.from_numpy(patch.noisy).float()
        cloud = network.look(x_t, 120)
        e_t = network.features(cloud)
        score = network.scores(cloud, e_t, e_t, x_t, torch.ones(120)).detach().double().numpy()
        # Lines 8-9: a = alpha_bar_t, b = alpha_bar_{t - Delta}, Eq. 7 as printed.
        t, later = patch.t, patch.t - delta
        a, b = TRAINING_SCHEDULE.alpha_bar[t], TRAINING_SCHEDULE.alpha_bar[later]
        factor = 1 - np.sqrt((1 - b) * a / ((1 - a) * b))
        truth = patch.ground_truth(patch.noisy, config)
        masked = np.arange(120)[:, None] < 20
        moved = patch.noisy + factor * np.where(masked, score, truth)
        # Lines 10-11.
        x_later = torch.from_numpy(moved).float()
        cloud_later = network.look(x_later, 120)
        e_later = network.features(cloud_later)
        time = torch.full((120,), later / t)
        again = network.scores(cloud_later, e_later, e_t, x_t, time).detach().double().numpy()
        # Lines 13-14.
        truth_later = patch.ground_truth(moved, config)
        for sigma, found, wanted in (
            (sigma_bar[t], score, truth),
            (max(sigma_bar[later], sigma_bar[config.t_min]), again, truth_later),
        ):
            weight = (1 - config.loss_lambda) / sigma + config.loss_lambda
            total += np.sum((weight * (found - wanted)[:20]) ** 2) / (3 * 20)
    assert float(losses.total.detach()) == pytest.approx(LOSS_SCALE * total, rel=1e-3)


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
    assert whole.deltas[2:] == part.deltas
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
    (patch,), (delta,) = batch.patches, batch.deltas
    fresh = copy.deepcopy(batch.generators[0]).standard_normal(patch.noisy.shape)
    batch_losses(network, batch, config)
    t, later = patch.t, patch.t - delta
    alpha = TRAINING_SCHEDULE.alpha_bar[t] / TRAINING_SCHEDULE.alpha_bar[later]
    beta = 1.0 - alpha
    way = batch.truth[0] * beta / (1.0 - TRAINING_SCHEDULE.alpha_bar[t])
    expected = (patch.noisy + way) / np.sqrt(alpha) + np.sqrt(beta) * fresh
    assert later > 0
    assert np.allclose(clouds[0].numpy()[20:], expected[20:], atol=1e-6)

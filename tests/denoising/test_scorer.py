from dataclasses import replace

import numpy as np
import pytest
import torch

from pointmend.denoising.amends import Amends
from pointmend.denoising.scorer import LONGEST_SCORE, PatchScorer
from pointmend.geometry.local import LocalGeometry
from pointmend.geometry.neighbours import neighbour_table
from pointmend.geometry.patches import cover_by_patches
from pointmend.network.config import DEFAULT, PAPER, NetworkConfig
from pointmend.network.score import ScoreNetwork

SMALL = {"channels": 8, "hidden": 8, "layers": 1, "blocks": 1}


def awake(config: NetworkConfig) -> ScoreNetwork:
    torch.manual_seed(0)
    network = ScoreNetwork(replace(config, **SMALL)).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network


@pytest.mark.parametrize(
    "config",
    [PAPER, DEFAULT, replace(DEFAULT, told_ways=True)],
    ids=["paper", "default", "told ways"],
)
def test_later_steps_see_the_noisy_input_and_the_way_from_it(config: NetworkConfig) -> None:
    network = awake(config)
    rng = np.random.default_rng(0)
    x = 0.2 * rng.random((150, 3))
    later = x + 0.01 * rng.standard_normal(x.shape)
    patches = cover_by_patches(x, 150, 1.0)
    scorer = PatchScorer(network, patches, torch.device("cpu"), batch=1)
    scorer(x, 1.0)
    found = scorer(later, 0.4)

    def local(points: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(points[patches.members[0]] - patches.centres[0]).float()

    with torch.no_grad():
        start, now = network.look(local(x), 150), network.look(local(later), 150)
        expected = network.scores(
            now,
            network.features(now),
            network.features(start),
            start.positions,
            torch.full((150,), 0.4),
            ways=network.ways(now, torch.from_numpy((x - later)[patches.members[0]])),
        )
    assert np.allclose(found[patches.members[0]], expected.numpy(), atol=1e-6)


def test_noise_is_told_without_looking_at_the_noisy_input_twice() -> None:
    network = awake(replace(DEFAULT, told_noise=True))
    rng = np.random.default_rng(2)
    x = 0.2 * rng.random((150, 3))
    patches = cover_by_patches(x, 80, 2.0)
    looks, fusions = [], []
    look = network.look

    def watch(positions: torch.Tensor, patch_points: int) -> LocalGeometry:
        looks.append(positions)
        return look(positions, patch_points)

    def scorer() -> PatchScorer:
        return PatchScorer(network, patches, torch.device("cpu"), batch=1)

    told_at_once = scorer()(x, 1.0, 0.02)
    network.look = watch  # type: ignore[method-assign]
    network.fusion.register_forward_hook(lambda module, inputs, output: fusions.append(output))
    asked = scorer()
    untold = asked(x, 1.0)
    once = len(looks)
    told = asked(x, 1.0, 0.02)
    assert len(looks) == len(fusions) == once == len(patches.members)
    assert np.array_equal(told, told_at_once)
    assert not np.allclose(told, untold)
    # As soon as points have moved, it looks again.
    later = asked(x + 0.001, 0.5, 0.02)
    assert len(looks) == len(fusions) == 2 * once
    # Who is told only then (the steps before were scored in parts) is told the same.
    only_later = scorer()
    only_later(x, 1.0)
    assert np.array_equal(only_later(x + 0.001, 0.5, 0.02), later)
    # At another time the noisy input says something else.
    again = scorer()
    again(x, 1.0)
    assert not np.allclose(again(x, 0.5, 0.02), told)


def test_the_first_look_has_what_the_owner_of_each_point_sees() -> None:
    network = awake(DEFAULT)
    x = 0.2 * np.random.default_rng(4).random((150, 3))
    patches = cover_by_patches(x, 80, 2.0)
    found = PatchScorer(network, patches, torch.device("cpu"), batch=2).first_look(x)
    alone = PatchScorer(network, patches, torch.device("cpu"), batch=2)(x, 1.0)
    assert np.array_equal(found.scores, alone)
    for point in (0, 70, 149):
        members = patches.members[patches.owner[point]]
        local = torch.from_numpy(x[members] - patches.centres[patches.owner[point]])
        planes = network.look(local, len(members)).planes
        assert planes is not None
        place = patches.place[point]
        assert np.allclose(found.spreads[point], planes.spread[place, :, 0], atol=1e-6)
        assert np.allclose(found.tails[point], planes.tails[place], atol=1e-5)
    blind = PatchScorer(awake(PAPER), patches, torch.device("cpu"), batch=2).first_look(x)
    assert blind.spreads.shape == blind.tails.shape == (150, 0)


def test_noise_can_be_told_for_each_point() -> None:
    network = awake(replace(DEFAULT, told_noise=True))
    x = 0.2 * np.random.default_rng(3).random((150, 3))
    patches = cover_by_patches(x, 80, 2.0)

    def told(sigma: np.ndarray | float) -> np.ndarray:
        return PatchScorer(network, patches, torch.device("cpu"), batch=2)(x, 1.0, sigma)

    everywhere = told(0.02)
    assert np.array_equal(told(np.full(150, 0.02)), everywhere)
    louder = np.full(150, 0.02)
    louder[::3] = 0.03
    differs = np.any(told(louder) != everywhere, axis=1)
    assert np.array_equal(differs, louder > 0.02)


def test_what_points_are_owed_is_added_to_their_scores() -> None:
    network = awake(DEFAULT)
    rng = np.random.default_rng(4)
    x, way = 0.2 * rng.random((150, 3)), 0.01 * rng.standard_normal((150, 3))
    # Patches as large as the cloud: all see the same neighbours as the cloud has.
    patches = cover_by_patches(x, 150, 2.0)
    scorer = PatchScorer(network, patches, torch.device("cpu"), batch=2)
    plain, amended = scorer(x, 1.0), scorer(x, 1.0, owed=Amends(way, 0.2))
    around = neighbour_table(torch.from_numpy(x), 150, DEFAULT.neighbours)
    assert np.allclose(amended - plain, Amends(way, 0.2).around(around), atol=1e-12)


def test_scores_beyond_all_training_are_no_scores() -> None:
    network = awake(DEFAULT)
    x = np.vstack([0.2 * np.random.default_rng(1).random((200, 3)), [[50.0, 0.0, 0.0]]])
    scorer = PatchScorer(network, cover_by_patches(x, 300, 1.0), torch.device("cpu"), batch=1)
    scores = scorer(x, 1.0)
    assert np.all(scores[-1] == 0.0)
    assert np.linalg.norm(scores, axis=1).max() <= LONGEST_SCORE

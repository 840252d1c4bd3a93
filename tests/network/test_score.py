from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from pointmend.errors import InputError
from pointmend.geometry.local import LocalGeometry
from pointmend.geometry.planes import Planes
from pointmend.network.config import DEFAULT, PAPER, NetworkConfig
from pointmend.network.fusion import FeatureFusion
from pointmend.network.gradient import GradientPrediction
from pointmend.network.score import COMPARED_GAIN, ScoreNetwork

SMALL: dict[str, Any] = {"channels": 16, "hidden": 16, "layers": 2, "blocks": 2}
VARIANTS = {
    "paper": replace(PAPER, **SMALL),
    "default": replace(DEFAULT, **SMALL),
    "curved": replace(DEFAULT, curved=True, plane_walks=(1, 3), **SMALL),
    "told": replace(DEFAULT, told_noise=True, **SMALL),
    "told ways": replace(DEFAULT, told_ways=True, **SMALL),
    "one-sided G": replace(DEFAULT, mutual=False, **SMALL),
    "patch frame": replace(DEFAULT, frame="patch", **SMALL),
    "F_T": replace(PAPER, fusion="initial", **SMALL),
    "F_t": replace(PAPER, fusion="current", **SMALL),
    "F_t+T": replace(PAPER, fusion="mean", **SMALL),
    "w/o GF": replace(PAPER, gradient_neighbours=1, **SMALL),
    "GF(const)": replace(PAPER, gradient_weights="constant", **SMALL),
}


def noisy_sheet(count: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = 0.4 * torch.rand(count, 3, generator=generator) - 0.2
    x[:, 2] = 0.5 * x[:, 0] ** 2 + 0.01 * torch.randn(count, generator=generator)
    return x


def awake(config: NetworkConfig, seed: int = 0) -> ScoreNetwork:
    """A network whose layers that start at zero have been woken up, so that tests see them."""
    torch.manual_seed(seed)
    network = ScoreNetwork(config).eval()
    with torch.no_grad():
        for parameter in network.gradient.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return network


@pytest.fixture(params=VARIANTS, scope="module")
def network(request: pytest.FixtureRequest) -> ScoreNetwork:
    return awake(VARIANTS[request.param])


def test_scores_have_one_row_per_point_and_are_finite(network: ScoreNetwork) -> None:
    for count in (1, 3, 30, 200):
        scores = network(noisy_sheet(count), count)
        assert scores.shape == (count, 3)
        assert scores.isfinite().all()


def test_scores_of_some_points_are_those_of_all_points(network: ScoreNetwork) -> None:
    x = noisy_sheet(150)
    cloud = network.look(x, 150)
    features = network.features(cloud)
    time = torch.full((150,), 0.4)
    with torch.no_grad():
        whole = network.scores(cloud, features, features, x, time)
        some = network.scores(cloud, features, features, x, time, torch.tensor([3, 140, 77]))
    assert torch.allclose(some, whole[[3, 140, 77]], atol=1e-6)


def test_features_of_wanted_points_are_those_of_all_points(network: ScoreNetwork) -> None:
    cloud = network.look(noisy_sheet(400), 200)
    wanted = torch.tensor([390, 3, 140, 77, 201])
    others = torch.ones(400, dtype=torch.bool)
    others[wanted] = False
    with torch.no_grad():
        whole = network.features(cloud)
        some = network.features(cloud, wanted)
        none = network.features(cloud, wanted[:0])
    assert torch.allclose(some[wanted], whole[wanted], atol=1e-5)
    assert not some[others].any()
    assert not none.any()


def test_patches_do_not_see_each_other(network: ScoreNetwork) -> None:
    first, second = noisy_sheet(120, 1), noisy_sheet(120, 2)
    with torch.no_grad():
        together = network(torch.cat([first, second]), 120)
        alone = torch.cat([network(first, 120), network(second, 120)])
    assert torch.allclose(together, alone, atol=1e-6)


def test_scores_follow_a_permutation(network: ScoreNetwork) -> None:
    x = noisy_sheet(160)
    order = torch.randperm(160, generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        assert torch.allclose(network(x[order], 160), network(x, 160)[order], atol=1e-5)


def test_learning_and_inference_compute_the_same(network: ScoreNetwork) -> None:
    x = noisy_sheet(300)
    learning = network(x, 300)
    with torch.no_grad():
        assert torch.allclose(network(x, 300), learning, atol=1e-6)


def test_gradients_reach_every_parameter_that_takes_part(network: ScoreNetwork) -> None:
    x = noisy_sheet(100)
    cloud = network.look(x, 100)
    back = 0.01 * torch.randn(100, 3, dtype=torch.float64)
    moved = network.look(x - back, 100)
    time = torch.full((100,), 0.5)
    told = network.compared(network.spreads(cloud), torch.full((100,), 0.02))
    start, now = network.features(cloud), network.features(moved)
    ways = network.ways(moved, back)
    scores = network.scores(moved, now, start, x, time, told=told, ways=ways)
    names = [name for name, _ in network.named_parameters()]
    loss = (scores * torch.randn_like(scores)).sum()
    gradients = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True)
    silent = [n for n, g in zip(names, gradients) if g is None or not g.any()]
    # With k = 1 a point is its own neighbour: there is no offset to learn from.
    alone = network.config.gradient_neighbours == 1
    assert silent == (["gradient.offset.weight"] if alone else [])


@pytest.mark.parametrize("name", ["default", "told ways"])
def test_the_point_frame_turns_and_shifts_with_the_cloud(name: str) -> None:
    network = awake(VARIANTS[name])
    x = noisy_sheet(200)
    generator = torch.Generator().manual_seed(3)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=generator)).Q
    turn = turn * torch.linalg.det(turn)
    start = x + 0.05 * torch.randn(200, 3, generator=generator)

    def scores(now: Tensor, before: Tensor) -> Tensor:
        cloud = network.look(now, 200)
        initial = network.features(network.look(before, 200))
        time = torch.full((200,), 0.5)
        ways = network.ways(cloud, (before - now).double())
        return network.scores(cloud, network.features(cloud), initial, before, time, ways=ways)

    with torch.no_grad():
        straight = scores(x, start)
        turned = scores(x @ turn.T + 0.3, start @ turn.T + 0.3)
    assert (turned - straight @ turn.T).norm(dim=1).median() < 1e-6


def test_time_and_the_noisy_input_change_the_learned_fusion_only() -> None:
    for name, config in VARIANTS.items():
        fusion = FeatureFusion(config)
        place, current, initial = torch.randn(9, 3), torch.randn(9, 16), torch.randn(9, 16)
        early, late = torch.ones(9), torch.full((9,), 0.2)
        with torch.no_grad():
            same = torch.equal(
                fusion(place, early, current, initial), fusion(place, late, current, initial)
            )
        assert same == (name in ("F_T", "F_t", "F_t+T"))
    assert torch.equal(FeatureFusion(VARIANTS["F_T"])(place, early, current, initial), initial)
    assert torch.equal(FeatureFusion(VARIANTS["F_t"])(place, early, current, initial), current)
    mean = FeatureFusion(VARIANTS["F_t+T"])(place, early, current, initial)
    assert torch.allclose(mean, (current + initial) / 2)


def test_noise_is_heard_where_it_is_told_and_by_a_network_that_listens(
    network: ScoreNetwork,
) -> None:
    x = noisy_sheet(60)
    cloud = network.look(x, 60)
    time, features = torch.ones(60), network.features(cloud)

    def scores(noise: Tensor | None) -> Tensor:
        told = None if noise is None else network.compared(network.spreads(cloud), noise)
        with torch.no_grad():
            return network.scores(cloud, features, features, x, time, told=told)

    nothing, here = scores(None), torch.arange(60) < 30
    assert torch.equal(scores(torch.zeros(60)), nothing)
    some = scores(torch.where(here, 0.02, 0.0))
    changed = (some != nothing).any(dim=1)
    assert torch.equal(changed, here & torch.tensor(network.config.told_noise))


def test_what_neighbours_were_moved_by_is_heard_by_a_network_that_listens(
    network: ScoreNetwork,
) -> None:
    x = noisy_sheet(60)
    cloud = network.look(x, 60)
    time, features = torch.ones(60), network.features(cloud)

    def scores(way: float | None) -> Tensor:
        back = torch.zeros(60, 3, dtype=torch.float64) + (way or 0.0)
        ways = None if way is None else network.ways(cloud, back)
        with torch.no_grad():
            return network.scores(cloud, features, features, x, time, ways=ways)

    nothing = scores(None)
    assert torch.equal(scores(0.0), nothing)
    assert torch.equal(scores(0.001), nothing) != network.config.told_ways


def test_a_share_of_what_neighbours_were_moved_by_is_given_back() -> None:
    network = awake(VARIANTS["told ways"])
    with torch.no_grad():
        network.gradient.ways.weight.zero_()
        network.gradient.returned.weight.zero_()
        network.gradient.returned.bias.copy_(torch.tensor([0.3, 0.2, -0.1]))
        x = noisy_sheet(200)
        cloud, time = network.look(x, 200), torch.ones(200)
        features = network.features(cloud)
        ways = network.ways(cloud, 0.01 * torch.randn(200, 3, dtype=torch.float64))
        assert ways is not None
        without = network.scores(cloud, features, features, x, time)
        given = network.scores(cloud, features, features, x, time, ways=ways) - without
    expected = 0.3 * ways[:, 0] + 0.2 * ways[:, 1] - 0.1 * ways[:, 2]
    assert torch.allclose(given, expected, atol=1e-6)


def test_noise_is_compared_with_the_distances_from_planes() -> None:
    network = awake(VARIANTS["told"])
    generator = torch.Generator().manual_seed(4)
    x = torch.rand(2000, 3, generator=generator)
    x[:, 2] = 0.02 * torch.randn(2000, generator=generator)
    cloud = network.look(x, 2000)
    told = network.compared(network.spreads(cloud), torch.full((2000,), 0.02))
    assert told is not None
    assert torch.equal(told[:, -1], torch.ones(2000))
    # The largest scale sees the noise nearly as it is.
    assert told[:, -2].median().abs() < 0.6
    half = network.compared(network.spreads(cloud), torch.full((2000,), 0.01))
    assert half is not None
    expected = COMPARED_GAIN * torch.log(torch.tensor(2.0))
    assert torch.allclose((half - told)[:, :-1].median(), expected)


def test_xi_is_a_softmax_weighted_sum() -> None:
    gradients, weights = torch.randn(3, 5, 4), torch.randn(5, 4)
    xi = GradientPrediction(VARIANTS["paper"]).fuse(gradients, weights)
    naive = sum(gradients[:, i] * (weights[i].exp() / weights.exp().sum(0)) for i in range(5))
    assert isinstance(naive, Tensor)
    assert torch.allclose(xi, naive, atol=1e-6)
    constant = GradientPrediction(VARIANTS["GF(const)"]).fuse(gradients, weights)
    assert torch.allclose(constant, gradients.mean(dim=1))


def test_a_new_network_with_planes_averages_its_neighbours_planes() -> None:
    torch.manual_seed(0)
    x = noisy_sheet(300)
    x[:, 2] = 0.0
    x[150, 2] = 0.02
    scores = ScoreNetwork(VARIANTS["default"])(x, 300).detach()
    assert scores[150, 2] < -0.01
    assert scores[150, :2].abs().max() < 0.01


@pytest.mark.parametrize(
    "values",
    [
        {"fusion": "sum"},
        {"width": 3},
        {"channels": -1},
        {"frame": "global"},
        {"mutual": True},
        {"told_ways": True},
    ],
)
def test_unknown_settings_are_errors(values: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        NetworkConfig.from_dict(values)


def test_the_configuration_survives_plain_values() -> None:
    for config in (PAPER, DEFAULT):
        assert NetworkConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize("name", ["paper", "default"])
def test_the_network_compiles_to_one_graph(name: str) -> None:
    network = awake(VARIANTS[name])
    x = noisy_sheet(64)
    cloud = network.look(x, 64)
    given = (cloud.positions, cloud.neighbours, *_planes_and_frames(cloud))
    exported = torch.export.export(_Scores(network), given, strict=False)
    with torch.no_grad():
        assert torch.allclose(exported.module()(*given), network(x, 64), atol=1e-5)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_network_is_not_bound_to_a_device(name: str) -> None:
    network = ScoreNetwork(VARIANTS[name]).to("meta")
    with torch.no_grad():
        scores = network(torch.empty(90, 3, device="meta"), 30)
    assert scores.device.type == "meta"
    assert scores.shape == (90, 3)


def _planes_and_frames(cloud: LocalGeometry) -> tuple[Tensor, ...]:
    if cloud.planes is None or cloud.frames is None:
        return ()
    planes = cloud.planes
    fitted = tuple(getattr(planes, field.name) for field in fields(planes))
    return (*fitted, cloud.frames)


class _Scores(torch.nn.Module):
    """The network as a function of tensors alone, as a compiler wants it."""

    def __init__(self, network: ScoreNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, positions: Tensor, neighbours: Tensor, *fitted: Tensor) -> Tensor:
        planes = Planes(*fitted[:-1]) if fitted else None
        frames = fitted[-1] if fitted else None
        cloud = LocalGeometry(positions, neighbours, len(positions), planes, frames)
        features = self.network.features(cloud)
        time = torch.ones(len(positions))
        return self.network.scores(cloud, features, features, positions, time)

"""Noise as every point reads it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pointmend.network.config import DEFAULT
from pointmend.network.noise import LEAST_ERROR, MOST_ERROR, reading_loss
from pointmend.network.score import ScoreNetwork

SMALL: dict[str, Any] = {"channels": 16, "hidden": 16, "layers": 2, "blocks": 2}
READS = replace(DEFAULT, reads_noise=True, **SMALL)


def network(seed: int = 0) -> ScoreNetwork:
    torch.manual_seed(seed)
    return ScoreNetwork(READS).eval()


def noisy_plane(sigma: float, seed: int, count: int = 400) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = 0.4 * torch.rand(count, 3, generator=generator)
    x[:, 2] = sigma * torch.randn(count, generator=generator)
    return x


@torch.no_grad()
def read(of: ScoreNetwork, x: Tensor, rows: Tensor | None = None) -> Tensor:
    cloud = of.look(x, len(x))
    rows = torch.arange(len(x)) if rows is None else rows
    said = of.noise_read(cloud, of.features(cloud), rows)
    assert said is not None
    return said


def test_a_network_that_does_not_read_says_nothing() -> None:
    deaf = ScoreNetwork(replace(READS, reads_noise=False))
    cloud = deaf.look(noisy_plane(0.01, 0), 400)
    assert deaf.noise_read(cloud, deaf.features(cloud), torch.arange(3)) is None


def test_every_point_says_how_far_off_it_may_be_within_bounds() -> None:
    reader = network()
    last = reader.noise.layers[-1]
    assert isinstance(last, nn.Linear)
    for said_by_layers, error in ((-100.0, LEAST_ERROR), (100.0, MOST_ERROR)):
        with torch.no_grad():
            last.bias.fill_(said_by_layers)
        said = read(reader, noisy_plane(0.01, 0))
        assert said.shape == (400, 2)
        assert said[:, 1].exp().numpy() == pytest.approx(error)


def test_some_rows_say_what_they_say_among_all() -> None:
    x, rows = noisy_plane(0.01, 1), torch.tensor([7, 3, 399])
    assert torch.allclose(read(network(), x, rows), read(network(), x)[rows], atol=1e-6)


def test_it_does_not_matter_where_a_cloud_is_or_how_its_points_are_ordered() -> None:
    x, reader = noisy_plane(0.01, 2), network()
    said = read(reader, x)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    turn *= np.linalg.det(turn)
    moved = (x @ torch.from_numpy(turn.T).float() + 0.5)[order]
    assert torch.allclose(read(reader, moved), said[order], atol=2e-3)


def test_points_without_any_noise_have_an_opinion() -> None:
    assert read(network(), noisy_plane(0.0, 3)).isfinite().all()
    assert read(network(), torch.zeros(50, 3)).isfinite().all()


def test_the_loss_is_least_where_error_and_opinion_are_right() -> None:
    sigma = torch.tensor([0.01, 0.02])
    right = torch.tensor([[0.01, 0.1], [0.02, 0.1]]).log()
    assert float(reading_loss(right, sigma)) == pytest.approx(np.log(0.1))
    off = right + torch.tensor([0.2, 0.0])
    assert float(reading_loss(off, sigma)) == pytest.approx(0.2 / 0.1 + np.log(0.1), rel=1e-4)
    honest = torch.stack([off[:, 0], torch.full((2,), 0.2).log()], dim=1)
    least = reading_loss(honest, sigma)
    for wrong in (-0.3, 0.3):
        assert least < reading_loss(honest + torch.tensor([0.0, wrong]), sigma)


def test_it_can_be_learned_and_holds_for_other_noise() -> None:
    reader = network()
    levels = torch.logspace(-2.7, -1.6, 12)
    clouds = [reader.look(noisy_plane(float(s), n), 400) for n, s in enumerate(levels)]
    with torch.no_grad():
        features = [reader.features(cloud) for cloud in clouds]
    optimiser = torch.optim.Adam(reader.noise.parameters(), 3e-3)
    everyone = torch.arange(400)
    for step in range(240):
        which = step % len(clouds)
        said = reader.noise(clouds[which], features[which], everyone)
        optimiser.zero_grad()
        torch.autograd.backward(reading_loss(said, levels[which].expand(400)))
        optimiser.step()
    for seed, sigma in enumerate((0.004, 0.009, 0.018)):
        level, error = read(reader, noisy_plane(sigma, 100 + seed)).unbind(1)
        weight = (-error).exp()
        found = float(((level * weight).sum() / weight.sum()).exp())
        assert found == pytest.approx(sigma, rel=0.1)

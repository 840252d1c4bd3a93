import numpy as np
import pytest
import torch
from torch import Tensor

from pointmend.geometry.neighbours import neighbour_table
from pointmend.geometry.planes import (
    MOST_TAILS,
    NEAREST,
    TAIL_SCALES,
    PlaneScales,
    fit_planes,
    neighbourhood_moments,
    tails_of,
)

SCALES = PlaneScales()


def cloud(count: int = 300, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(count, 3, generator=generator, dtype=torch.float64)
    points[:, 2] = 0.1 * points[:, 0] + 0.01 * torch.randn(
        count, generator=generator, dtype=torch.float64
    )
    return points


def test_moments_agree_with_averaging_by_hand() -> None:
    x = cloud(120)
    table = neighbour_table(x, 120, 48)  # every third makes 16 reads
    moments = neighbourhood_moments(x, table, (1, 2, 4))
    assert moments.shape == (120, 5, 9)

    def monomials(p: Tensor) -> Tensor:
        outer = p[:, :, None] * p[:, None, :]
        return torch.cat([p, outer[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]], dim=1)

    naive = [monomials(x)[table[:, :k]].mean(dim=1) for k in NEAREST]
    for walks in (1, 2, 4):
        current = naive[-1]
        for _ in range(walks):
            current = current[table[:, ::3]].mean(dim=1)
        naive.append(current)
    assert torch.allclose(moments, torch.stack(naive, dim=1), atol=1e-14)


def test_planes_of_a_plane_are_that_plane() -> None:
    x = cloud(400)
    x[:, 2] = 0.1 * x[:, 0]
    planes, frames = fit_planes(x, neighbour_table(x, 400, 48), SCALES)
    normal = torch.tensor([-0.1, 0.0, 1.0]) / np.sqrt(1.01)
    assert torch.allclose((planes.normal @ normal).abs(), torch.ones(400, len(SCALES)), atol=1e-5)
    assert planes.height.abs().max() < 1e-6
    assert torch.allclose(
        frames @ frames.transpose(1, 2), torch.eye(3).expand(400, 3, 3), atol=1e-5
    )
    assert torch.allclose(torch.linalg.det(frames), torch.ones(400), atol=1e-5)


def test_planes_and_frames_turn_with_the_cloud() -> None:
    x = cloud(300)
    turn = torch.linalg.qr(
        torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    ).Q
    turn = turn * torch.linalg.det(turn)
    table = neighbour_table(x, 300, 48)
    planes, frames = fit_planes(x, table, SCALES)
    turned_planes, turned_frames = fit_planes(x @ turn.T + 3.0, table, SCALES)
    assert torch.allclose(turned_planes.height, planes.height, atol=1e-6)
    assert torch.allclose(turned_planes.spread, planes.spread, atol=1e-6)
    assert torch.allclose(turned_frames, frames @ turn.T.float(), atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_few_and_coinciding_points_stay_finite(count: int) -> None:
    for x in (torch.zeros(count, 3), torch.rand(count, 3)):
        planes, frames = fit_planes(x, neighbour_table(x, count, 48), SCALES)
        assert planes.normal.isfinite().all()
        assert frames.isfinite().all()


def test_two_scales_lead_to_where_a_sphere_is() -> None:
    index = torch.arange(4000, dtype=torch.float64) + 0.5
    z, angle = 1.0 - index / 2000.0, torch.pi * (1.0 + 5.0**0.5) * index
    ring = (1.0 - z * z).sqrt()
    sphere = torch.stack([ring * angle.cos(), ring * angle.sin(), z], dim=1)
    planes, _ = fit_planes(sphere, neighbour_table(sphere, 4000, 48), SCALES)
    outward = sphere.unsqueeze(1).float()
    depth = -(planes.height.unsqueeze(2) * planes.normal * outward).sum(-1)
    left = -(planes.curved.unsqueeze(2) * planes.normal[:, :-1] * outward).sum(-1)
    assert (depth.mean(0)[1:] > 0.005).all()  # planes cut the cap off
    assert (left.mean(0).abs() < 0.2 * depth.mean(0)[:-1]).all()


def test_what_lies_flat_is_not_bent() -> None:
    x = cloud(400)
    x[:, 2] = 0.1 * x[:, 0]
    planes, _ = fit_planes(x, neighbour_table(x, 400, 48), SCALES)
    assert planes.curved.shape == (400, len(SCALES) - 1)
    assert planes.curved.abs().max() < 1e-6


def test_the_extrapolation_is_bounded() -> None:
    """Scales of one size say nothing about curvature; their difference must not explode."""
    x = torch.rand(10, 3, dtype=torch.float64)  # every neighbourhood is the whole cloud
    planes, _ = fit_planes(x, neighbour_table(x, 10, 48), SCALES)
    assert (planes.curved.abs() <= 5.0 * planes.offset.norm(dim=2)[:, :-1] + 1.0).all()
    assert planes.curved.isfinite().all()


def test_tails_agree_with_averaging_by_hand() -> None:
    x = cloud(120)
    table = neighbour_table(x, 120, 48)
    height = 0.01 * torch.randn(120, 2, generator=torch.Generator().manual_seed(1))
    fourth, second = height.double() ** 4, height.double() ** 2
    for _ in range(3):
        fourth, second = (each[table[:, ::3]].mean(dim=1) for each in (fourth, second))
    expected = (fourth.sqrt() / second).float()
    assert torch.allclose(tails_of(height, table, 3), expected, atol=0.02)  # a little is added
    big = tails_of(100.0 * height, table, 3)
    assert torch.allclose(big, expected, atol=1e-5)  # and is nothing beside large distances


def test_tails_without_noise_are_those_of_noise() -> None:
    x = cloud(120)
    table = neighbour_table(x, 120, 48)
    flat = torch.zeros(120, 1)
    assert torch.allclose(tails_of(flat, table, 4), torch.full((120, 1), 3**0.5))
    one_far_off = flat.clone()
    one_far_off[7] = 1.0
    assert tails_of(one_far_off, table, 4).max() == pytest.approx(MOST_TAILS)


def test_tails_tell_two_sheets_from_noise_as_wide() -> None:
    rng = np.random.default_rng(0)
    ground = np.zeros((6000, 3))
    ground[:, :2] = rng.random((6000, 2))
    sheets = ground.copy()
    sheets[::2, 2] = 0.06
    sigma = 0.015
    wide = np.hypot(sigma, 0.03)  # as far from the middle as the noisy sheets are
    scales = PlaneScales(32, (1, 2, 4, 8), tail_walks=4)
    inner = torch.from_numpy((np.abs(ground[:, :2] - 0.5) < 0.3).all(axis=1))
    tails = []
    for points in (
        ground + wide * rng.standard_normal(ground.shape),
        sheets + sigma * rng.standard_normal(ground.shape),
    ):
        x = torch.from_numpy(points)
        planes, _ = fit_planes(x, neighbour_table(x, len(x), 32), scales)
        assert planes.tails.shape == (6000, TAIL_SCALES)
        tails.append(planes.tails[inner, -1])
    one, two = tails
    assert two.quantile(0.9) < 1.6 < one.quantile(0.1)
    assert one.median() == pytest.approx(3**0.5, abs=0.1)


def test_no_one_pays_for_tails_who_does_not_ask() -> None:
    x = cloud(50)
    planes, _ = fit_planes(x, neighbour_table(x, 50, 48), SCALES)
    assert planes.tails.shape == (50, 0)

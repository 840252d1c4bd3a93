import torch
from torch import Tensor

from pointmend.geometry.neighbours import neighbour_table
from pointmend.geometry.planes import Planes, PlaneScales, fit_planes
from pointmend.network.gradient import PlaneVotes

SCALES = PlaneScales()


def sphere(count: int) -> Tensor:
    index = torch.arange(count, dtype=torch.float64) + 0.5
    z, angle = 1.0 - 2.0 * index / count, torch.pi * (1.0 + 5.0**0.5) * index
    ring = (1.0 - z * z).sqrt()
    return torch.stack([ring * angle.cos(), ring * angle.sin(), z], dim=1)


def votes_on(x: Tensor, *, curved: bool, k: int = 8) -> tuple[PlaneVotes, Planes, Tensor, Tensor]:
    table = neighbour_table(x, len(x), 48)
    planes, _ = fit_planes(x, table, SCALES)
    at = torch.arange(0, len(x), 7)
    near = table[at, :k]
    x = x.float()
    offsets = x[at].unsqueeze(1) - x[near]
    votes = PlaneVotes(planes, at, near.reshape(-1), offsets, curved=curved)
    return votes, planes, at, near


def test_votes_are_the_formulas_pair_by_pair() -> None:
    x = sphere(500) * (1.0 + 0.02 * torch.sin(torch.arange(500.0))).unsqueeze(1).double()
    votes, planes, at, near = votes_on(x, curved=True)
    x = x.float()
    for pair in (0, 13, 201):
        v, i = int(at[pair // 8]), int(near.reshape(-1)[pair])
        away = x[v] - x[i]
        for s in range(5):
            n, m = planes.normal[i, s], planes.normal[v, s]
            m = m if n @ m >= 0 else -m
            sign = 1.0 if n @ planes.normal[v, s] >= 0 else -1.0
            assert torch.isclose(votes.heights[pair, s], planes.height[i, s] - n @ away, atol=1e-6)
            own = sign * (planes.height[v, s] + planes.normal[v, s] @ away)
            assert torch.isclose(votes.own_heights[pair, s], own, atol=1e-6)
            assert torch.isclose(votes.agreement[pair, s], n @ m, atol=1e-6)
            if s < 4:
                expected = planes.curved[i, s] - 0.5 * (n + m) @ away
                assert torch.isclose(votes.heights[pair, 5 + s], expected, atol=1e-6)


def test_curved_votes_leave_a_sphere_alone_and_planes_do_not() -> None:
    votes, *_ = votes_on(sphere(4000), curved=True)
    plane, curved = votes.heights[:, 3].abs().mean(), votes.heights[:, 5 + 3].abs().mean()
    assert curved < 0.2 * plane


def test_votes_are_mixed_along_their_normals() -> None:
    votes, planes, _, near = votes_on(sphere(300), curved=False)
    shares = torch.zeros(len(votes.heights), 5)
    shares[:, 2] = 1.0
    normal = planes.normal[near.reshape(-1), 2]
    assert torch.allclose(votes.mix(shares), votes.heights[:, 2:3] * normal)

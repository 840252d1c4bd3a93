import pytest
import torch
from torch import Tensor

from pointmend.geometry.local import LocalGeometry, local_geometry
from pointmend.geometry.planes import PlaneScales
from pointmend.network.features import HEIGHT_GAIN, OFFSET_GAIN
from pointmend.network.pairs import Pairs, PointTable

SCALES = PlaneScales()
K = 8


def sphere(count: int) -> Tensor:
    index = torch.arange(count, dtype=torch.float64) + 0.5
    z, angle = 1.0 - 2.0 * index / count, torch.pi * (1.0 + 5.0**0.5) * index
    ring = (1.0 - z * z).sqrt()
    return torch.stack([ring * angle.cos(), ring * angle.sin(), z], dim=1)


def rough_sphere() -> Tensor:
    return sphere(500) * (1.0 + 0.02 * torch.sin(torch.arange(500.0))).unsqueeze(1).double()


def look(x: Tensor, *, planes: bool = True, frames: bool = True) -> LocalGeometry:
    return local_geometry(x, len(x), 48, planes=planes, frames=frames, scales=SCALES)


def pairs_of(cloud: LocalGeometry, *, curved: bool) -> tuple[Pairs, Tensor, Tensor]:
    at = torch.arange(0, len(cloud.positions), 7)
    near = cloud.neighbours[at, :K].t()
    return Pairs(PointTable.of(cloud), at, near, curved=curved), at, near


def test_pairs_are_the_formulas_one_by_one() -> None:
    cloud = look(rough_sphere())
    planes, frames, x = cloud.planes, cloud.frames, cloud.positions
    assert planes is not None
    assert frames is not None
    pairs, at, near = pairs_of(cloud, curved=True)
    seen = pairs.seen(mutual=True)
    for q, j in ((0, 0), (13, 4), (20, 7)):
        v, i = int(at[q]), int(near[j, q])
        away = x[v] - x[i]
        assert torch.equal(pairs.away[:, j, q], away)
        assert torch.allclose(seen[:3, j, q], OFFSET_GAIN * frames[i] @ away, atol=1e-5)
        for s in range(5):
            n, m = planes.normal[i, s], planes.normal[v, s]
            sign = 1.0 if n @ m >= 0 else -1.0
            m = sign * m
            height = planes.height[i, s] - n @ away
            own = sign * (planes.height[v, s] + planes.normal[v, s] @ away)
            assert torch.isclose(pairs.heights[s, j, q], height, atol=1e-6)
            assert torch.isclose(pairs.own_heights[s, j, q], own, atol=1e-6)
            assert torch.isclose(pairs.agreement[s, j, q], n @ m, atol=1e-6)
            told = seen[3:, j, q][[s, 9 + s, 14 + s]]
            expected = torch.stack([HEIGHT_GAIN * height, HEIGHT_GAIN * own, n @ m])
            assert torch.allclose(told, expected, atol=1e-4)
            if s < 4:
                surface = planes.curved[i, s] - 0.5 * (n + m) @ away
                assert torch.isclose(pairs.heights[5 + s, j, q], surface, atol=1e-6)
                assert torch.isclose(seen[8 + s, j, q], HEIGHT_GAIN * surface, atol=1e-4)


def test_axes_turn_vectors_there_and_back() -> None:
    cloud = look(rough_sphere())
    assert cloud.frames is not None
    pairs, _, near = pairs_of(cloud, curved=False)
    vectors = torch.randn(3, *near.shape, generator=torch.Generator().manual_seed(0))
    back = pairs.from_axes(vectors)
    for q, j in ((0, 0), (13, 4)):
        expected = vectors[:, j, q] @ cloud.frames[near[j, q]]
        assert torch.allclose(back[:, j, q], expected, atol=1e-6)


def test_without_axes_and_planes_only_the_way_is_seen() -> None:
    pairs, *_ = pairs_of(look(rough_sphere(), planes=False, frames=False), curved=False)
    assert torch.equal(pairs.seen(mutual=False), OFFSET_GAIN * pairs.away)
    assert pairs.from_axes(pairs.away) is pairs.away


def test_curved_votes_leave_a_sphere_alone_and_planes_do_not() -> None:
    pairs, *_ = pairs_of(look(sphere(4000)), curved=True)
    plane, curved = pairs.heights[3].abs().mean(), pairs.heights[5 + 3].abs().mean()
    assert curved < 0.2 * plane


@pytest.mark.parametrize("vote", [2, 7])
def test_votes_are_mixed_along_their_normals(vote: int) -> None:
    cloud = look(sphere(300))
    assert cloud.planes is not None
    pairs, _, near = pairs_of(cloud, curved=True)
    shares = torch.zeros_like(pairs.heights)
    shares[vote] = 1.0
    normal = cloud.planes.normal[near, vote % 5].permute(2, 0, 1)
    assert torch.allclose(pairs.mix(shares), pairs.heights[vote] * normal)

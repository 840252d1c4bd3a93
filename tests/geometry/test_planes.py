import numpy as np
import pytest
import torch
from torch import Tensor

from pointmend.geometry.neighbours import neighbour_table
from pointmend.geometry.planes import (
    NEAREST,
    PlaneScales,
    fit_planes,
    neighbourhood_moments,
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

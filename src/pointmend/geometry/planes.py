"""Planes fitted around every point at several scales, from one table of neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# The neighbourhoods, small to large. The first two are plain means over the nearest points; the
# others smooth the one before by walking to neighbours again (every third of the 48, so that 16
# reads cover the ring), once, twice and four times: about 80, 180 and 370 points. Smoothing
# moments needs no larger search and does not depend on the order of the points.
NEAREST = (12, 32)
WALKS = (1, 2, 4)
WALK_STRIDE = 3
SCALES = len(NEAREST) + len(WALKS)


@dataclass(frozen=True)
class Planes:
    """
    One plane per point and scale (S scales).

    Attributes
    ----------
    offset : (M, S, 3) from the point to the centre of its neighbourhood.
    normal : (M, S, 3) unit normals, all scales of one point on one side.
    height : (M, S) (offset . normal): how far the point must move along the normal.
    spread : (M, S, 3) standard deviations along the principal axes, smallest first.
    """

    offset: Tensor
    normal: Tensor
    height: Tensor
    spread: Tensor


def neighbourhood_moments(positions: Tensor, neighbours: Tensor) -> Tensor:
    """
    First and second moments of the neighbourhoods of every point at every scale.

    Parameters
    ----------
    positions : (M, 3) float64.
    neighbours : (M, K) rows, nearest first.

    Returns
    -------
    (M, S, 9): mean x, y, z and mean xx, xy, xz, yy, yz, zz.
    """
    x, y, z = positions.unbind(1)
    monomials = torch.stack([x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], dim=1)
    scales = []
    total = monomials.new_zeros(monomials.shape)
    columns = neighbours.t().contiguous()
    for j in range(min(max(NEAREST), len(columns))):
        total += monomials.index_select(0, columns[j])
        if j + 1 in NEAREST:
            scales.append(total / (j + 1))
    while len(scales) < len(NEAREST):
        scales.append(total / len(columns))
    walk = columns[::WALK_STRIDE]
    current = scales[-1]
    for walks in WALKS:
        for _ in range(walks):
            total = torch.zeros_like(current)
            for column in walk:
                total += current.index_select(0, column)
            current = total / len(walk)
        scales.append(current)
    return torch.stack(scales, dim=1)


def fit_planes(positions: Tensor, neighbours: Tensor) -> tuple[Planes, Tensor]:
    """
    Fit a plane to every neighbourhood, and give every point a frame of its own.

    Parameters
    ----------
    positions : (M, 3).
    neighbours : (M, K) rows, nearest first, itself among them.

    Returns
    -------
    planes : float32 `Planes`.
    frames : (M, 3, 3) float32 rotations, rows are the axes: two tangents and the normal of the
        scale at which the neighbourhood is flattest, turned towards the plane.
    """
    exact = positions.double()
    moments = neighbourhood_moments(exact, neighbours)
    centre = moments[..., :3]
    xx, xy, xz, yy, yz, zz = moments[..., 3:].unbind(-1)
    second = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], dim=-1).reshape(*xx.shape, 3, 3)
    covariance = second - centre.unsqueeze(-1) * centre.unsqueeze(-2)
    variance = symmetric_eigenvalues(covariance)
    spread = variance.clamp_min(0.0).sqrt()
    normal = symmetric_eigenvector(covariance, variance[..., 0])
    offset = centre - exact.unsqueeze(1)
    flattest = (spread[..., 0] / (spread[..., 1] + 1e-12)).argmin(dim=1)
    rows = torch.arange(len(exact), device=exact.device)
    aim = offset[rows, flattest]
    up = _towards(normal[rows, flattest], aim)
    longest = symmetric_eigenvector(covariance[rows, flattest], variance[rows, flattest, 2])
    # Where the axes are not unique the two need not be perpendicular: make them so.
    across = torch.linalg.cross(up, _towards(longest, aim))
    across = _unit(across, up.roll(1, dims=1) - up.roll(-1, dims=1))
    frames = torch.stack([torch.linalg.cross(across, up), across, up], dim=1)
    normal = _towards(normal, up.unsqueeze(1).expand(-1, SCALES, -1))
    height = (offset * normal).sum(-1)
    planes = Planes(offset.float(), normal.float(), height.float(), spread.float())
    return planes, frames.float()


def _towards(axis: Tensor, direction: Tensor) -> Tensor:
    """Turn the axes (..., 3) into the half-space of the directions (..., 3)."""
    side = (axis * direction).sum(-1, keepdim=True)
    return torch.where(side < 0, -axis, axis)


def symmetric_eigenvalues(matrix: Tensor) -> Tensor:
    """
    Eigenvalues of symmetric 3 x 3 matrices in closed form, smallest first.

    Parameters
    ----------
    matrix : (..., 3, 3) float64.

    Returns
    -------
    (..., 3)

    Notes
    -----
    The trigonometric solution of the characteristic cubic: ten times faster than a LAPACK call
    per matrix, and in float64 more than exact enough for planes.
    """
    mean = matrix.diagonal(dim1=-2, dim2=-1).mean(-1)
    centred = matrix - mean[..., None, None] * torch.eye(3, dtype=matrix.dtype).to(matrix.device)
    size = (centred.square().sum((-2, -1)) / 6.0).sqrt()
    a, b, c = centred.unbind(-2)
    determinant = (a * torch.linalg.cross(b, c)).sum(-1)
    cosine = determinant / (2.0 * size**3).clamp_min(torch.finfo(matrix.dtype).tiny)
    angle = cosine.clamp(-1.0, 1.0).acos() / 3.0
    third = 2.0 * torch.pi / 3.0
    shape = torch.stack([(angle + third).cos(), (angle - third).cos(), angle.cos()], dim=-1)
    return mean.unsqueeze(-1) + 2.0 * size.unsqueeze(-1) * shape


def symmetric_eigenvector(matrix: Tensor, value: Tensor) -> Tensor:
    """
    Unit eigenvector of symmetric 3 x 3 matrices for a given single eigenvalue.

    Parameters
    ----------
    matrix : (..., 3, 3).
    value : (...,) an eigenvalue of each.

    Returns
    -------
    (..., 3). Where the eigenvalue is multiple, some unit vector.
    """
    identity = torch.eye(3, dtype=matrix.dtype).to(matrix.device)
    a, b, c = (matrix - value[..., None, None] * identity).unbind(-2)
    # The rows span the plane across the eigenvector; the largest cross product is the safest.
    crosses = torch.stack(
        [torch.linalg.cross(a, b), torch.linalg.cross(b, c), torch.linalg.cross(c, a)], dim=-2
    )
    best = crosses.square().sum(-1).argmax(-1)
    vector = crosses.gather(-2, best[..., None, None].expand(*best.shape, 1, 3)).squeeze(-2)
    return _unit(vector, identity[2].expand_as(vector))


def _unit(vector: Tensor, otherwise: Tensor) -> Tensor:
    """Vectors (..., 3) made unit length; the other ones, made unit length, where they vanish."""
    length = vector.norm(dim=-1, keepdim=True)
    spare = otherwise / otherwise.norm(dim=-1, keepdim=True).clamp_min(1e-30)
    return torch.where(length > 1e-30, vector / length.clamp_min(1e-30), spare)

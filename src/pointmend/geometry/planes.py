"""Geometry: planes fitted around every point at several scales, from one table of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from pointmend.chunks import chunks, take

from .symmetric import eigenvalues, eigenvector

NEAREST = (12, 32)
WALK_READS = 16
MOST_EXTRAPOLATION = 2.0

# Tails are told of the largest scales, where a neighbourhood sees both sides of a thin wall.
TAIL_SCALES = 3
TAIL_NOISE = 1e-3
MOST_TAILS = 2.2

# Points fitted at once by each thread: their moments stay in the cache.
CHUNK = 2048


@dataclass(frozen=True)
class PlaneScales:
    """
    The neighbourhoods planes are fitted to, small to large.

    The first two are plain means over the 12 and 32 nearest points. The others smooth the one
    before by walking to neighbours again (16 reads spread over the ring): about 80, 180 and 370
    points for 48 neighbours and one, two and four more walks. Smoothing moments needs no larger
    search and does not depend on the order of the points.

    Attributes
    ----------
    neighbours : nearest points that are known.
    walks : more walks before each further scale.
    tail_walks : walks over which `tails_of` is taken; 0 when no one asks for tails.
    """

    neighbours: int = 48
    walks: tuple[int, ...] = (1, 2, 4)
    tail_walks: int = 0

    def __len__(self) -> int:
        """Number of scales S."""
        return len(NEAREST) + len(self.walks)


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
    curved : (M, S - 1) like height, for the surface the planes of a scale and the next lead to.
    tails : (M, T) what `tails_of` says at the T largest scales; T = 0 when no one asks.
    """

    offset: Tensor
    normal: Tensor
    height: Tensor
    spread: Tensor
    curved: Tensor
    tails: Tensor

    def rows(self, index: Tensor | slice) -> Planes:
        """The planes of some points, U of them."""
        return Planes(*(take(getattr(self, field.name), index) for field in fields(self)))


def neighbourhood_moments(positions: Tensor, neighbours: Tensor, walks: Sequence[int]) -> Tensor:
    """
    First and second moments of the neighbourhoods of every point at every scale.

    Parameters
    ----------
    positions : (M, 3) float64.
    neighbours : (M, K) rows, nearest first.
    walks : more walks before each further scale.

    Returns
    -------
    (M, S, 9): mean x, y, z and mean xx, xy, xz, yy, yz, zz.
    """
    x, y, z = positions.unbind(1)
    monomials = torch.stack([x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], dim=1)
    scales = []
    total, counted = torch.zeros_like(monomials), 0
    for nearest in NEAREST:
        further = neighbours[:, counted:nearest]
        if further.shape[1] > 0:
            total = total + neighbourhood_sum(monomials, further)
            counted += further.shape[1]
        scales.append(total / counted)
    current = scales[-1]
    for more in walks:
        current = walked(current, neighbours, more)
        scales.append(current)
    return torch.stack(scales, dim=1)


def walked(values: Tensor, neighbours: Tensor, walks: int) -> Tensor:
    """Values (M, C) smoothed by some walks to neighbours (M, K): (M, C)."""
    walk = neighbours[:, :: max(1, neighbours.shape[1] // WALK_READS)].contiguous()
    for _ in range(walks):
        values = neighbourhood_sum(values, walk) / walk.shape[1]
    return values


def neighbourhood_sum(values: Tensor, neighbours: Tensor) -> Tensor:
    """
    Sum over each point's neighbours: (M, C) values and (Q, k) rows give (Q, C).

    On the CPU as the product with a sparse matrix of ones, which never stores the gathered rows.
    """
    if values.device.type != "cpu":
        return values[neighbours].sum(dim=1)
    count, k = neighbours.shape
    ones = np.ones(count * k, dtype=np.float64)
    starts = np.arange(0, count * k + 1, k)
    matrix = csr_array(
        (ones, neighbours.reshape(-1).numpy(), starts), shape=(count, len(values)), copy=False
    )
    return torch.from_numpy(matrix @ values.numpy())


def fit_planes(positions: Tensor, neighbours: Tensor, scales: PlaneScales) -> tuple[Planes, Tensor]:
    """
    Fit a plane to every neighbourhood, and give every point a frame of its own.

    Parameters
    ----------
    positions : (M, 3).
    neighbours : (M, K) rows, nearest first, itself among them.
    scales : the neighbourhoods.

    Returns
    -------
    planes : float32 `Planes`.
    frames : (M, 3, 3) float32 rotations, rows are the axes: two tangents and the normal of the
        scale at which the neighbourhood is flattest, turned towards the plane.
    """
    exact = positions.double()
    near = neighbours[:, : scales.neighbours]
    moments = neighbourhood_moments(exact, near, scales.walks)
    parts = [_fit(exact[rows], moments[rows]) for rows in chunks(len(exact), CHUNK)]
    offset, normal, height, spread, curved, frames = (torch.cat(each) for each in zip(*parts))
    tails = height[:, :0]
    if scales.tail_walks:
        tails = tails_of(height[:, -TAIL_SCALES:], near, scales.tail_walks)
    return Planes(offset, normal, height, spread, curved, tails), frames


def tails_of(height: Tensor, neighbours: Tensor, walks: int) -> Tensor:
    """
    How heavy the tails of the points' distances from their planes are: sqrt(mean h^4) / mean h^2.

    Noise around one surface leads to sqrt(3) = 1.73 however wide it is; two sheets that a plane
    lies between lead to 1 to 1.5. The planes' spreads alone cannot tell the two apart. Squares have
    no side, so that it does not matter which one a normal points to.

    Without noise nothing but the shape would be told. So they are those of the distances with a
    little noise (TAIL_NOISE) added, and those of few points far off are bounded.

    Parameters
    ----------
    height : (M, T) of the points above their planes. neighbours : (M, K). walks : how far to look.

    Returns
    -------
    (M, T)
    """
    square = height.double().square()
    mean = walked(torch.cat([square, square.square()], dim=1), neighbours, walks)
    second, fourth = mean.chunk(2, dim=1)
    added = TAIL_NOISE**2
    fourth = fourth + 6.0 * added * second + 3.0 * added**2
    return (fourth.sqrt() / (second + added)).clamp_max_(MOST_TAILS).float()


def _fit(positions: Tensor, moments: Tensor) -> tuple[Tensor, ...]:
    """Positions (n, 3) and moments (n, S, 9) to the arrays of `Planes`, and frames (n, 3, 3)."""
    # One array per entry over all points: the arithmetic below reads and writes whole rows.
    moments = moments.permute(2, 1, 0).contiguous()
    centre, second = moments[:3], moments[3:]
    x, y, z = centre
    covariance = second - torch.stack([x * x, x * y, x * z, y * y, y * z, z * z])
    variance = eigenvalues(covariance)
    spread = variance.clamp_min(0.0).sqrt_()
    normal = eigenvector(covariance, variance[0])
    offset = centre - positions.t().unsqueeze(1)

    flattest = (spread[0] / (spread[1] + 1e-12)).argmin(dim=0, keepdim=True)
    aim = _at_scale(offset, flattest)
    up = _towards(_at_scale(normal, flattest), aim)
    longest = eigenvector(_at_scale(covariance, flattest), _at_scale(variance, flattest)[2])
    # Where the axes are not unique the two need not be perpendicular: make them so.
    across = torch.linalg.cross(up, _towards(longest, aim), dim=0)
    across = _unit(across, up.roll(1, dims=0) - up.roll(-1, dims=0))
    frames = torch.stack([torch.linalg.cross(across, up, dim=0), across, up])

    normal = _towards(normal, up.unsqueeze(1))
    height = dot(offset, normal)
    curved = curved_heights(offset, normal, height, spread)
    arrays = (offset, normal, height, spread, curved, frames.transpose(0, 1))
    return tuple(_by_point(each) for each in arrays)


def curved_heights(offset: Tensor, normal: Tensor, height: Tensor, spread: Tensor) -> Tensor:
    """
    Where a curved surface lies, from the planes of one scale and the next.

    A plane through a curved neighbourhood lies too deep by half the curvature times the variance
    along the surface. Two scales tell how much, so that the error can be taken out (Richardson's
    extrapolation to a neighbourhood without extent): on a sphere it halves the RMS error of the
    best plane. Where the two are about the same size, the step beyond the
    smaller one is bounded.

    Parameters
    ----------
    offset, normal, spread : (3, S, M). height : (S, M).

    Returns
    -------
    (S - 1, M) heights along the normals of all scales but the last.
    """
    extent = spread[1].square() + spread[2].square()
    grown = (extent[1:] - extent[:-1]).clamp_min_(torch.finfo(extent.dtype).tiny)
    share = (extent[:-1] / grown).clamp_(0.0, MOST_EXTRAPOLATION)
    next_height = dot(offset[:, 1:], normal[:, :-1])
    return height[:-1] + share * (height[:-1] - next_height)


def _by_point(rows: Tensor) -> Tensor:
    """(..., M) arrays over all points as one float32 table (M, ...)."""
    return rows.float().permute(*reversed(range(rows.dim()))).contiguous()


def _at_scale(rows: Tensor, scale: Tensor) -> Tensor:
    """Of rows (C, S, M), what belongs to the scale (1, M) chosen for each point: (C, M)."""
    return rows.gather(1, scale.expand(len(rows), 1, -1)).squeeze(1)


def dot(a: Tensor, b: Tensor) -> Tensor:
    """Scalar products of (3, ...) arrays of vectors; a sum over dim 0 is several times slower."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _towards(axis: Tensor, direction: Tensor) -> Tensor:
    """Turn the axes (3, ...) into the half-space of the directions (3, ...)."""
    return torch.where(dot(axis, direction) < 0, -axis, axis)


def _unit(vector: Tensor, otherwise: Tensor) -> Tensor:
    """Vectors (3, M) made unit length; the other ones, made unit length, where they vanish."""
    length = dot(vector, vector).sqrt_()
    spare = otherwise / dot(otherwise, otherwise).sqrt_().clamp_min(1e-30)
    return torch.where(length > 1e-30, vector / length.clamp_min(1e-30), spare)

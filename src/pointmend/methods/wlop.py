"""Methods: weighted locally optimal projection (Huang et al. 2009), as CGAL's WLOP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.spatial import cKDTree

from pointmend.geometry.ordering import morton_order

from .local_frames import chunks, in_unit_sphere
from .method import Task

Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]

# Spacing is measured over the first ring of neighbours, and no point counts as farther from them
# than so many times the median: a few outliers must not widen the radius to the whole cloud.
RING = 6
WIDEST_SPACING = 3.0

# Points closer than this share of the radius coincide and say nothing about direction.
COINCIDING = 1e-4

# Pairs are searched this share beyond the radius, and again only after points have moved by as
# much: searching costs more than measuring.
SKIN = 0.1

# Pairs measured together, few enough for the processor's cache.
CHUNK_PAIRS = 200_000


@dataclass(frozen=True)
class Wlop:
    """
    Draw every point to the mean of the noisy points around it, and push it off its neighbours.

    All N points are samples, each starting at its own noisy point, so the order is kept. With
    theta(d) = exp(-4 d^2 / r^2) for d <= r, noisy points p_j and samples x_i, an iteration is

        v_j = 1 + sum over samples of theta(|x_j - x|), the density, x_j itself included,
        a_i = mean of p_j weighted by theta(|x_i - p_j|),
        b_i = mean of x_i - x_j weighted by v_j theta(|x_i - x_j|) / |x_i - x_j|^2,
        x_i <- a_i + 0.45 b_i,

    where points that coincide with x_i do not count, and b_i = 0 for a sample that has no two
    others within r. The noisy points' own densities are not evened out, which is CGAL's default.

    The radius, and with it how much is smoothed, does not look at the noise. Memory grows with
    the pairs within r, about 8 kB per point of a surface.

    Attributes
    ----------
    spacings : radius in units of the average spacing, which is the mean over all points of the
        mean distance to itself and the 6 nearest others. CGAL's default of 8 is made for thinning
        a cloud to 5 %; where all points are kept it smooths far too much, and 3 (at 1 % of noise)
        to 4 (at 3 %) is about the best on generated shapes of 10,000 points.
    iterations : CGAL's default of 35.
    repulsion : weight of b_i; 0.45 as in CGAL.
    name, keeps_order : see `Method`.
    """

    spacings: float = 8.0
    iterations: int = 35
    repulsion: float = 0.45
    name: str = "WLOP"
    keeps_order: bool = True

    def __call__(self, task: Task) -> Float64:
        """Denoise: (N, 3) -> (N, 3)."""
        return in_unit_sphere(task.points, self._project)

    def _project(self, points: Float64) -> Float64:
        # Points that are close in space are close in memory.
        order = morton_order(points)
        noisy = points[order]
        radius = self.spacings * average_spacing(noisy)
        to_noisy, to_samples = NearPairs(radius), NearPairs(radius)
        samples = noisy
        for _ in range(self.iterations):
            drawn = attraction(samples, noisy, to_noisy)
            samples = drawn + self.repulsion * repulsion(samples, to_samples)
        moved = np.empty_like(points)
        moved[order] = samples
        return moved


def average_spacing(points: Float64) -> float:
    """
    Mean distance from every point to itself and its 6 nearest others, outliers bounded.

    Parameters
    ----------
    points : (N, 3) with N >= 1.
    """
    width = min(RING + 1, len(points))
    distance = cKDTree(points).query(points, k=width)[0].reshape(len(points), width)
    spacing = distance.mean(axis=1)
    return float(np.minimum(spacing, WIDEST_SPACING * np.median(spacing)).mean())


@dataclass
class NearPairs:
    """
    Pairs of a sample and a point within a radius, found again only when samples have moved.

    Attributes
    ----------
    radius : largest distance of a pair.
    """

    radius: float
    _from: Float64 | None = field(default=None, init=False)
    _pairs: tuple[Int32, Int32] = field(init=False)

    def between(
        self, samples: Float64, points: Float64 | None = None
    ) -> Iterator[tuple[Int32, Int32, Float64]]:
        """
        Rows of samples, rows of points, and squared distances of all pairs, in chunks.

        Parameters
        ----------
        samples : (N, 3).
        points : (M, 3), the same in every call; when None, the samples themselves, each pair of
            two of them once.
        """
        if self.radius == 0.0:
            return
        # Two samples may have come closer from both sides.
        allowed = SKIN * self.radius * (0.5 if points is None else 1.0)
        if self._from is None or _farthest_move(samples, self._from) > allowed:
            self._pairs = _pairs_within((1.0 + SKIN) * self.radius, samples, points)
            self._from = samples
        first = np.ascontiguousarray(samples.T)
        second = first if points is None else np.ascontiguousarray(points.T)
        for start in range(0, len(self._pairs[0]), CHUNK_PAIRS):
            i, j = (rows[start : start + CHUNK_PAIRS] for rows in self._pairs)
            squared = np.zeros(len(i))
            for a, b in zip(first, second):
                gap = a.take(i)
                gap -= b.take(j)
                gap *= gap
                squared += gap
            yield i, j, squared


def attraction(samples: Float64, noisy: Float64, pairs: NearPairs) -> Float64:
    """
    Mean of the noisy points around every sample.

    Parameters
    ----------
    samples : (N, 3).
    noisy : (M, 3).
    pairs : those of samples and noisy points.

    Returns
    -------
    (N, 3); a sample without noisy points around it stays.
    """
    extended = np.column_stack([noisy, np.ones(len(noisy))])
    total = np.zeros((len(samples), 4))
    for i, j, squared in pairs.between(samples, noisy):
        weight = _theta(squared, pairs.radius)
        weight[squared < (COINCIDING * pairs.radius) ** 2] = 0.0
        total += coo_array((weight, (i, j)), shape=(len(samples), len(noisy))) @ extended
    alone = total[:, 3:] == 0.0
    mean: Float64 = np.where(alone, samples, total[:, :3] / np.where(alone, 1.0, total[:, 3:]))
    return mean


def repulsion(samples: Float64, pairs: NearPairs) -> Float64:
    """
    Mean of the vectors from its neighbours to every sample, the near and the crowded ones most.

    Parameters
    ----------
    samples : (N, 3).
    pairs : those of samples and samples.

    Returns
    -------
    (N, 3)
    """
    count = len(samples)
    shape = (count, count)
    density, others = np.full(count, 2.0), np.zeros(count)
    push = []
    for i, j, squared in pairs.between(samples):
        weight = _theta(squared, pairs.radius)
        for rows in (i, j):
            density += np.bincount(rows, weight, minlength=count)
            others += np.bincount(rows[weight > 0.0], minlength=count)
        coincide = squared < (COINCIDING * pairs.radius) ** 2
        weight[coincide] = 0.0
        weight /= np.where(coincide, 1.0, squared)
        push.append(coo_array((weight, (i, j)), shape=shape))
    extended = density[:, None] * np.column_stack([samples, np.ones(count)])
    total = np.zeros((count, 4))
    for matrix in push:
        total += matrix @ extended
        total += matrix.T @ extended
    alone = (total[:, 3:] == 0.0) | (others[:, None] < 2)
    mean = total[:, :3] / np.where(alone, 1.0, total[:, 3:])
    return np.where(alone, 0.0, samples - mean)


def _theta(squared: Float64, radius: float) -> Float64:
    """The weight of a squared distance."""
    weight = np.exp(squared * (-4.0 / radius**2))
    weight[squared > radius**2] = 0.0
    return weight


def _farthest_move(now: Float64, before: Float64) -> float:
    step = now - before
    return float(np.sqrt(np.einsum("ni,ni->n", step, step).max()))


def _pairs_within(reach: float, samples: Float64, points: Float64 | None) -> tuple[Int32, Int32]:
    """Rows of samples and of points (or other samples) closer than `reach`."""
    if points is None:
        pairs = cKDTree(samples).query_pairs(reach, output_type="ndarray")
        return pairs[:, 0].astype(np.int32), pairs[:, 1].astype(np.int32)
    tree = cKDTree(points)
    first, second = [], []
    for rows in chunks(len(samples), 100):
        found = cKDTree(samples[rows]).sparse_distance_matrix(tree, reach, output_type="ndarray")
        first.append(found["i"].astype(np.int32) + np.int32(rows.start))
        second.append(found["j"].astype(np.int32))
    return np.concatenate(first), np.concatenate(second)

"""Methods: SBD (score-denoise, ICCV 2021) with its own sampler, and with ours (Table 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor

from pointmend.denoising.first_look import trimmed_rms
from pointmend.diffusion.arrangement import arrange
from pointmend.diffusion.steps import decaying_steps, reverse_steps
from pointmend.geometry.farthest import farthest_points
from pointmend.geometry.neighbours import nearest
from pointmend.geometry.ordering import distinct_points
from pointmend.geometry.patches import cover_by_patches

from .local_frames import in_unit_sphere
from .method import Task
from .sbd_network import SBDNetwork

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

# SBD's published settings.
PATCH_POINTS = 1000
OVERLAP = 3
ENSEMBLE = 4
STEPS = 30
TWO_PASSES_FROM = 0.03

ADAPTIVE_STEPS = 5

# Noise level over the trimmed RMS of the first scores: the median over Gaussian noise of 0.5 to
# 2 %, what SBD was trained on, on four shapes made from formulas with 10,000 and 50,000 points
# (python -m benchmarks.sbd_calibration). There the estimate is 0.80 to 1.13 of the truth; at 3 %,
# where the network's scores grow shorter again, 0.44 to 0.64. Little hangs on it: the network is
# not told the time, and the factors of Eq. 7 depend on ratios of noise levels.
SIGMA_PER_SCORE = 1.31


@dataclass(frozen=True)
class NoisyPatch:
    """
    A noisy patch as SBD's network knows it: positions, and features made once from them.

    Attributes
    ----------
    points : (n, 3) in the unit sphere.
    features : (n, 60) float32.
    """

    network: SBDNetwork
    points: Float64
    features: Tensor

    @classmethod
    def look(cls, network: SBDNetwork, points: Float64) -> NoisyPatch:
        """Make the features of points (n, 3), n >= 1."""
        return cls(network, points, network.features(torch.from_numpy(points).float()))

    def scores(self, viewers: Int64, positions: Float64) -> Float64:
        """
        Scores of positions, each as one point of the patch sees it.

        Parameters
        ----------
        viewers : (Q,) points of the patch.
        positions : (Q, 3)

        Returns
        -------
        (Q, 3)
        """
        conditions = self.network.conditions(self.features)
        offsets = torch.from_numpy(positions - self.points[viewers]).float()
        found = self.network.scores(conditions, torch.from_numpy(viewers), offsets)
        return found.double().numpy()

    def summed_scores(self, current: Float64) -> Float64:
        """
        SBD's ensemble: every noisy point scores the 4 current points nearest to it.

        Parameters
        ----------
        current : (n, 3) where the patch's points are now.

        Returns
        -------
        (n, 3) for each current point the sum of the scores it was given, four on average.
        """
        k = min(ENSEMBLE, len(current))
        scored = nearest(current, self.points, k).reshape(-1)
        viewers = np.repeat(np.arange(len(self.points)), k)
        scores = self.scores(viewers, current[scored])
        columns = [np.bincount(scored, column, minlength=len(current)) for column in scores.T]
        return np.stack(columns, axis=1)

    def mean_scores(self, positions: Float64) -> Float64:
        """
        The way to the surface: the mean of what the 4 noisy points nearest to a position say.

        The network was trained to tell the way from a position to the surface (the mean of the
        nearest clean points), so one score has the right length, and so has a mean. SBD's sum is
        four times that on average, but depends on how many noisy points a position is near to.

        Parameters
        ----------
        positions : (Q, 3)

        Returns
        -------
        (Q, 3)
        """
        k = min(ENSEMBLE, len(self.points))
        viewers = nearest(self.points, positions, k).reshape(-1)
        scores = self.scores(viewers, np.repeat(positions, k, axis=0))
        return np.asarray(scores.reshape(-1, k, 3).mean(axis=1))


@dataclass(frozen=True)
class SBD:
    """
    SBD as published: 30 decaying steps in every patch, merged by farthest-point sampling.

    Order and identity of the points are lost, and the result is spread evenly. Two passes from a
    known noise level of 3 % on, one otherwise.
    """

    network: SBDNetwork
    name: str = "SBD"
    keeps_order: bool = False

    def __call__(self, task: Task) -> Float64:
        """Denoise: (N, 3) -> (N, 3), in another order."""
        passes = 2 if task.level is not None and task.level >= TWO_PASSES_FROM else 1

        def denoise(x: Float64) -> Float64:
            for _ in range(passes):
                x = self._one_pass(x)
            return x

        return in_unit_sphere(task.points, denoise)

    def _one_pass(self, x: Float64) -> Float64:
        """Denoise every patch of a cloud (N, 3), N >= 1, and merge them to N points again."""
        moved = [relax(NoisyPatch.look(self.network, x[members])) for members in cut_patches(x)]
        return spread_evenly(np.concatenate(moved), len(x))


@dataclass(frozen=True)
class AdaptiveSBD:
    """
    SBD's network with our sampler: Algorithm 2 with L = 5, the paper's "SBD (+our)".

    The noise level is estimated from the first scores, the schedule arranged for it (Eq. 16), the
    steps are those of Eq. 7, and each point comes from the patch whose centre is nearest.
    """

    network: SBDNetwork
    steps: int = ADAPTIVE_STEPS
    name: str = "SBD (+our)"
    keeps_order: bool = True

    def __call__(self, task: Task) -> Float64:
        """Denoise: (N, 3) -> (N, 3), row by row."""

        def denoise(points: Float64) -> Float64:
            x, copies = distinct_points(points)
            moved: Float64 = self._denoised(x)[copies]
            return moved

        return in_unit_sphere(task.points, denoise)

    def first_scores(self, x: Float64) -> Float64:
        """Scores (N, 3) of a noisy cloud (N, 3) in the unit sphere: what sigma is read from."""
        return _first_scores(x, self._patches(x))

    def _denoised(self, x: Float64) -> Float64:
        """Algorithm 2 on points (N, 3) in the unit sphere."""
        patches = self._patches(x)
        first = _first_scores(x, patches)
        arrangement = arrange(estimated_sigma(first), self.steps)
        factors = [step.factor for step in reverse_steps(arrangement.schedule, arrangement.times)]
        moved = x.copy()
        for patch, rows in patches:
            for number, factor in enumerate(factors):
                scores = first[rows] if number == 0 else patch.mean_scores(moved[rows])
                moved[rows] += factor * scores
        return moved

    def _patches(self, x: Float64) -> list[tuple[NoisyPatch, Int64]]:
        """
        The patches that cover a cloud, each with the points it decides about.

        A point's way depends on where it is and on the noisy patch, not on the patch's other
        moving points, so that only the owned ones need to be moved.
        """
        cover = cover_by_patches(x, PATCH_POINTS, OVERLAP)
        return [
            (NoisyPatch.look(self.network, x[members]), members[places])
            for members, places in zip(cover.members, cover.owned)
            if len(places) > 0
        ]


def estimated_sigma(first: Float64) -> float:
    """The noise level from the mean scores (N, 3) of the noisy points, in their unit."""
    return SIGMA_PER_SCORE * trimmed_rms(first)


def _first_scores(x: Float64, patches: list[tuple[NoisyPatch, Int64]]) -> Float64:
    """Scores (N, 3) of the noisy points (N, 3), each from the patch that owns it."""
    scores = np.empty_like(x)
    for patch, rows in patches:
        scores[rows] = patch.mean_scores(x[rows])
    return scores


def cut_patches(x: Float64) -> Int64:
    """SBD's patches of a cloud (N, 3), N >= 1: (P, n) the points nearest to P far apart seeds."""
    size = min(PATCH_POINTS, len(x))
    seeds = farthest_points(x, max(1, OVERLAP * len(x) // PATCH_POINTS))
    return np.reshape(cKDTree(x).query(x[seeds], k=size)[1], (len(seeds), size))


def relax(patch: NoisyPatch) -> Float64:
    """SBD's 30 steps of length 0.2 * 0.95^s along the summed scores: (n, 3)."""
    current = patch.points.copy()
    for step in decaying_steps(STEPS):
        current += step.factor * patch.summed_scores(current)
    return current


def spread_evenly(points: Float64, count: int) -> Float64:
    """
    Exactly `count` of the points, by farthest-point sampling.

    Parameters
    ----------
    points : (M, 3), M >= 1.

    Returns
    -------
    (count, 3) the farthest points first; where too few places differ, the other points follow,
    and are repeated if there are fewer points than wanted.
    """
    chosen = farthest_points(points, count)
    left = np.ones(len(points), dtype=bool)
    left[chosen] = False
    order = np.concatenate([chosen, np.flatnonzero(left)])
    return points[np.resize(order, count)]

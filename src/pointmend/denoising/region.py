"""Denoising: one region of a cloud, density level by density level, through Algorithm 2."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.geometry.density import Surroundings, level_of, nearest_level, surroundings

from .algorithm import Progress, Report, Sampler, Verdict
from .first_look import FirstLook
from .gain import measure_gain, noise_around, nothing_to_gain
from .moved import Moved
from .options import HALO
from .settings import Settings
from .survey import (
    SAMPLE_POINTS,
    TRUSTED_POINTS,
    Survey,
    may_be_too_wide,
    nearest_first,
    noise_fills_space,
    reads_more,
)
from .thinning import Thinning

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

# A point may go this many times the noise, unless the user says how far. The noise of its level
# of density, not that around it: in a tree everything looks like noise.
FARTHEST_WAY = 5.0

# An estimate of the noise may be off either way, and a network that is told too little leaves more
# than one that is told too much. So a little more is told than was read (training/LOG.md).
TOLD_OF_READ = 1.03


class TooNoisy(Exception):
    """Raised on the first scores: the region has to be looked at in a larger scale."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey


class CarefulJudge:
    """
    Reads the noise off the first scores, and holds back points that would gain nothing.

    Parameters
    ----------
    points : (n, 3) in input units.
    own : (n,) the points whose scores count.
    around : surroundings of all n points, in input units.
    level : their density level.

    Attributes
    ----------
    sigma, shares : what the scores said, once there were any: the noise in input units, and the
        share (n,) of its way each point may go.
    """

    def __init__(
        self,
        sampler: Sampler,
        survey: Survey,
        settings: Settings,
        points: Float64,
        own: Bools,
        around: Surroundings,
        level: int,
    ) -> None:
        self.sampler, self.survey, self.settings = sampler, survey, settings
        self.points, self.own, self.around, self.level = points, own, around, level
        self.sigma = 0.0
        self.shares = np.ones(len(points))

    def __call__(self, look: FirstLook) -> Verdict:
        """The verdict on what the network says of the n points."""
        scale, scores = self.survey.scale_of(self.level), look.scores
        if self.settings.sigma is not None:
            sigma = self.settings.sigma / scale
        elif self.survey.sigma is not None:
            sigma = self.survey.sigma[self.level] / scale
        else:
            sigma = self.sampler.estimate_sigma(scores[self.own], self.survey.network_spacing)
        if self.survey.sigma is None:
            self._check_scale(scores, sigma)
            if self.settings.sigma is None:
                own = look.rows(self.own)
                sigma = self.sampler.read_sigma(own, self.survey.network_spacing)
        self.sigma = sigma * scale
        thinning = Thinning(self.points, self.survey.network_spacing)
        noise = None
        if self.sampler.tells_noise:
            told = sigma if self.settings.sigma is not None else TOLD_OF_READ * sigma
            noise = noise_around(scores, self.around, told)
        if not self.settings.careful:
            return Verdict(sigma, thinning=thinning, around=noise)
        gain = measure_gain(scores * scale, self.around)
        known = gain.level if self.survey.gain is None else self.survey.gain
        self.shares = np.zeros(len(scores)) if nothing_to_gain(known) else gain.shares()
        return Verdict(sigma, self.shares, thinning, noise)

    def longest_way(self) -> float:
        """How far a point may go, in input units."""
        if self.settings.max_displacement is not None:
            return self.settings.max_displacement
        return FARTHEST_WAY * self.sigma

    def _check_scale(self, scores: Float64, sigma: float) -> None:
        """Raise `TooNoisy` when points fill space, or a sample reads more in a larger scale."""
        if noise_fills_space(self.survey, self.level, self.points, self.points[self.own]):
            larger = self.survey.zoomed_out
        elif not may_be_too_wide(self.survey, sigma):
            return
        else:
            middle = self.points[self.own][int(self.own.sum()) // 2]
            nearest = nearest_first(self.points, middle)
            sample, trusted = nearest[:SAMPLE_POINTS], nearest[:TRUSTED_POINTS]
            larger = reads_more(
                self.sampler, self.survey, self.level, self.points[sample], scores[trusted], sigma
            )
        if larger is not None:
            raise TooNoisy(larger)


def denoise_region(
    sampler: Sampler,
    points: Float64,
    core: Bools,
    survey: Survey,
    settings: Settings,
    report: Report,
    number: int = 0,
) -> Moved:
    """
    Denoise the core of a region; the points around it only lend their neighbourhood.

    Parameters
    ----------
    points : (P, 3) distinct, in input units.
    core : (P,) whose results are wanted.
    number : of the region, for its random numbers.

    Raises
    ------
    TooNoisy
        When the noise was not measured beforehand, and a larger scale suits it better.
    """
    around = surroundings(points)
    levels = nearest_level(level_of(around.spacing, survey.reference), survey.levels)
    whole = Moved.nothing(len(points))
    most = 0
    for level in np.unique(levels[core]).tolist():
        wanted = core & (levels == level)
        rows = _within_reach(points, wanted, around.spacing)
        alone = len(rows) == len(points)
        near = around if alone else surroundings(points[rows])
        judge = CarefulJudge(sampler, survey, settings, points[rows], wanted[rows], near, level)
        rng = np.random.default_rng([settings.seed, number, level - min(survey.levels)])
        tell = _of_region(report, points + whole.shift, rows[judge.own], judge.own)
        part = _denoise_level(sampler, judge, rng, tell)
        whole.put(rows[judge.own], part.rows(judge.own))
        if judge.own.sum() > most:
            most, whole = int(judge.own.sum()), replace(whole, times=part.times)
    return whole


def _denoise_level(
    sampler: Sampler, judge: CarefulJudge, rng: np.random.Generator, report: Report
) -> Moved:
    """Denoise the points (n, 3) of one density level, together with those around them."""
    survey, settings, points = judge.survey, judge.settings, judge.points
    scale = survey.scale_of(judge.level)
    frame = replace(survey.frame, centre=points.mean(axis=0), scale=scale)
    noisy = frame.enter(points)

    def shift_to(reached: Float64) -> Float64:
        """The displacement in input units; it alone is scaled back: offsets lose nothing."""
        shift = (reached - noisy) * (scale * settings.strength)
        return _shortened(shift, judge.longest_way())

    def tell(state: Progress) -> None:
        if state.positions is not None:
            state = replace(state, positions=points + shift_to(state.positions))
        report(state)

    outcome = sampler.run(
        noisy,
        steps=settings.steps,
        eta=settings.eta,
        judge=judge,
        rng=rng,
        report=tell,
        spread=settings.spread,
    )
    taken = len(outcome.times) > 1
    return Moved(
        shift=shift_to(outcome.positions),
        shares=judge.shares if taken else np.zeros(len(points)),
        sigma=np.full(len(points), judge.sigma),
        outlier=np.zeros(len(points), dtype=bool),
        times=outcome.times,
    )


def _within_reach(points: Float64, wanted: Bools, spacing: Float64) -> Int64:
    """Rows of the points (P, 3) that can matter to the wanted ones (P,): themselves included."""
    if wanted.all():
        return np.arange(len(points))
    reach = HALO * spacing
    distance, _ = cKDTree(points[wanted]).query(points, distance_upper_bound=reach.max())
    return np.flatnonzero(distance <= reach)


def _shortened(shift: Float64, longest: float) -> Float64:
    """Displacements (n, 3) none of which is longer than allowed."""
    length = np.linalg.norm(shift, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(length > longest, longest / length, 1.0)
    return shift * factor[:, None]


def _of_region(report: Report, region: Float64, rows: Int64, own: Bools) -> Report:
    """
    The same report about a whole region, from one about the points of a level and those around.

    Parameters
    ----------
    region : (P, 3) where the points of the region are so far.
    rows : (m,) which of them belong to the level.
    own : (n,) which of the reported points these are, m of them.
    """

    def tell(state: Progress) -> None:
        if state.positions is not None:
            whole = region.copy()
            whole[rows] = state.positions[own]
            state = replace(state, positions=whole)
        report(state)

    return tell

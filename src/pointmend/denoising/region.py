"""One region of a cloud: density level by density level, with care, through Algorithm 2."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.errors import InputError
from pointmend.geometry.density import (
    LEVEL_FACTOR,
    Surroundings,
    level_of,
    nearest_level,
    surroundings,
)
from pointmend.geometry.frames import CloudFrame

from .algorithm import Progress, Report, Sampler, Verdict
from .gain import Gain, measure_gain, nothing_to_gain

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

# How far a point's result depends on others, in local spacings: at 48 what is beyond changes it
# by less than a thousandth of the noise (`python -m benchmarks.tiles`).
HALO = 48.0

# Above the noise training has shown, scores grow too short to tell how much it is. So wherever
# noise is wider than a spacing, a sample is looked at in a larger scale too: if that reads more,
# the larger scale is the right one.
WIDE_NOISE = 1.2
LARGER_SCALE = 2.5
READS_MORE = 1.15
LEAST_SPACING = 0.0035
SAMPLE_POINTS = 4_000
TRUSTED_POINTS = 1_000

# A point may go this many times the noise around it, unless the user says how far.
FARTHEST_WAY = 5.0


@dataclass(frozen=True)
class Settings:
    """
    What a user chooses about a run; lengths in input units.

    Attributes
    ----------
    steps, eta, seed : of the sampler.
    sigma : the noise level when it is known.
    strength : share of the way to go.
    max_displacement : how far a point may go; by default five times the noise around it.
    careful : leave points where they are where there is nothing to gain.
    outliers : flag points this many times farther from others than is usual among these; they
        neither move nor pull others. None flags nothing.
    """

    steps: int = 5
    eta: float = 0.0
    sigma: float | None = None
    strength: float = 1.0
    seed: int = 0
    max_displacement: float | None = None
    careful: bool = True
    outliers: float | None = None

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"steps is {self.steps}; at least 1 is needed")
        if not 0.0 <= self.eta <= 1.0:
            raise InputError(f"eta is {self.eta}; it lies between 0 and 1")
        if not 0.0 <= self.strength <= 1.0:
            raise InputError(f"strength is {self.strength}; it lies between 0 and 1")
        if self.sigma is not None and not (np.isfinite(self.sigma) and self.sigma >= 0.0):
            raise InputError(f"sigma is {self.sigma}; a noise level is a number of at least 0")
        if self.max_displacement is not None and not self.max_displacement >= 0.0:
            raise InputError(
                f"max_displacement is {self.max_displacement}; a length of at least 0 is needed"
            )
        if self.outliers is not None and not self.outliers > 1.0:
            raise InputError(f"outliers is {self.outliers}; a factor above 1 is needed")


@dataclass(frozen=True)
class Survey:
    """
    What is known of a whole cloud before its regions are worked on; lengths in input units.

    Attributes
    ----------
    frame : the scale of density level 0; its centre is that of the cloud.
    reference : local spacing of level 0.
    levels : density levels of the cloud.
    sigma : noise of each level, when it was measured beforehand.
    gain : noise over local spacing (`Gain.level`), when it was measured beforehand.
    """

    frame: CloudFrame
    reference: float
    levels: tuple[int, ...]
    sigma: dict[int, float] | None = None
    gain: float | None = None

    def scale_of(self, level: int) -> float:
        """Input units per unit of the network's frame at a density level."""
        return float(self.frame.scale * LEVEL_FACTOR**level)

    @property
    def network_spacing(self) -> float:
        """The typical spacing in the network's frame, the same at every level."""
        return self.frame.spacing / self.frame.scale

    @property
    def zoomed_out(self) -> Survey:
        """The survey at a larger scale, as far as the spacing allows."""
        factor = min(LARGER_SCALE, self.network_spacing / LEAST_SPACING)
        return replace(self, frame=replace(self.frame, scale=self.frame.scale * max(factor, 1.0)))


@dataclass(frozen=True)
class Moved:
    """
    What became of the P points of a region; rows that are not core mean nothing.

    Attributes
    ----------
    shift : (P, 3) in input units.
    shares : (P,) the share of its way each point was allowed.
    sigma : (P,) noise level each was treated with, in input units.
    outlier : (P,) who was left out as an outlier.
    times : what the sampler visited at the level of most points.
    """

    shift: Float64
    shares: Float64
    sigma: Float64
    outlier: Bools
    times: tuple[float, ...]

    @classmethod
    def nothing(cls, count: int) -> Moved:
        """Points none of which has moved yet."""
        zeros = np.zeros(count)
        return cls(np.zeros((count, 3)), zeros, zeros.copy(), zeros.astype(bool), (0.0,))

    def rows(self, index: Int64 | Bools) -> Moved:
        """What became of some of the points."""
        return Moved(
            self.shift[index],
            self.shares[index],
            self.sigma[index],
            self.outlier[index],
            self.times,
        )

    def put(self, index: Int64, part: Moved) -> None:
        """Take over what became of the points `index` (n,)."""
        self.shift[index], self.shares[index] = part.shift, part.shares
        self.sigma[index], self.outlier[index] = part.sigma, part.outlier


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
    gain, sigma : what the scores said, once there were any; sigma in input units.
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
        self.gain: Gain | None = None
        self.sigma = 0.0

    def __call__(self, scores: Float64) -> Verdict:
        """The verdict on scores (n, 3) in the network's frame."""
        scale = self.survey.scale_of(self.level)
        self.gain = gain = measure_gain(scores * scale, self.around)
        if self.settings.sigma is not None:
            sigma = self.settings.sigma / scale
        elif self.survey.sigma is not None:
            sigma = self.survey.sigma[self.level] / scale
        else:
            sigma = self.sampler.estimate_sigma(scores[self.own], self.survey.network_spacing)
        if self.survey.sigma is None:
            self._check_scale(scores, sigma)
        self.sigma = sigma * scale
        if not self.settings.careful:
            return Verdict(sigma)
        known = gain.level if self.survey.gain is None else self.survey.gain
        if nothing_to_gain(known):
            return Verdict(sigma, np.zeros(len(scores)))
        return Verdict(sigma, gain.shares())

    def longest_way(self) -> Float64:
        """How far each point may go (n,), in input units."""
        assert self.gain is not None
        if self.settings.max_displacement is not None:
            return np.full(len(self.points), self.settings.max_displacement)
        noise = self.gain.noise * self.around.spacing
        return FARTHEST_WAY * np.maximum(noise, self.sigma)

    def _check_scale(self, scores: Float64, sigma: float) -> None:
        """Raise `TooNoisy` when a sample reads more noise in a larger scale."""
        if sigma < WIDE_NOISE * self.survey.network_spacing:
            return
        middle = self.points[self.own][int(self.own.sum()) // 2]
        nearest = np.argsort(np.sum((self.points - middle) ** 2, axis=1), kind="stable")
        sample, trusted = nearest[:SAMPLE_POINTS], nearest[:TRUSTED_POINTS]
        larger = reads_more(
            self.sampler, self.survey, self.level, self.points[sample], scores[trusted]
        )
        if larger is not None:
            raise TooNoisy(larger)


def reads_more(
    sampler: Sampler, survey: Survey, level: int, points: Float64, scores: Float64
) -> Survey | None:
    """
    The survey at a larger scale, if points look noisier in it.

    Parameters
    ----------
    points : (n, 3) of a density level, nearest to their middle first, in input units.
    scores : (m, 3) of the first of them, in the network's frame.
    """
    larger = survey.zoomed_out
    scale = larger.scale_of(level)
    if scale < 1.3 * survey.scale_of(level):
        return None
    before = sampler.estimate_sigma(scores, survey.network_spacing) * survey.scale_of(level)
    found = sampler.first_scores((points - points.mean(axis=0)) / scale)[: len(scores)]
    after = sampler.estimate_sigma(found, larger.network_spacing) * scale
    return larger if after > READS_MORE * before else None


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
        tell = report if alone else _without_positions(report)
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
        noisy, steps=settings.steps, eta=settings.eta, judge=judge, rng=rng, report=tell
    )
    assert judge.gain is not None
    shift = shift_to(outcome.positions)
    sigma = outcome.sigma * scale
    shares = judge.gain.shares() if settings.careful else np.ones(len(points))
    if len(outcome.times) == 1:  # no step was taken
        shares = np.zeros(len(points))
    everyone = np.ones(len(points))
    return Moved(shift, shares, sigma * everyone, everyone == 0.0, outcome.times)


def _within_reach(points: Float64, wanted: Bools, spacing: Float64) -> Int64:
    """Rows of the points (P, 3) that can matter to the wanted ones (P,): themselves included."""
    if wanted.all():
        return np.arange(len(points))
    reach = HALO * spacing
    distance, _ = cKDTree(points[wanted]).query(points, distance_upper_bound=reach.max())
    return np.flatnonzero(distance <= reach)


def _shortened(shift: Float64, longest: Float64) -> Float64:
    """Displacements (n, 3) none of which is longer than allowed (n,)."""
    length = np.linalg.norm(shift, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(length > longest, longest / length, 1.0)
    return shift * factor[:, None]


def _without_positions(report: Report) -> Report:
    """The same report for a part of the cloud, whose positions mean nothing by themselves."""
    return lambda state: report(replace(state, positions=None))

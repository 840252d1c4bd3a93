"""Denoising: what is known of a cloud before any of it moves (spacing, density, noise)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.density import (
    LEVEL_FACTOR,
    Surroundings,
    common_levels,
    level_of,
    nearest_level,
    surroundings,
)
from pointmend.geometry.frames import CloudFrame, frame_by_spacing, frame_cloud
from pointmend.geometry.fullness import fullness
from pointmend.geometry.neighbours import typical_spacing
from pointmend.geometry.ordering import distinct_points
from pointmend.geometry.tiles import split_evenly

from .algorithm import Sampler, Verdict
from .first_look import FirstLook
from .gain import level_of_regions, measure_gain
from .store import Neighbourhoods, PointSource

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Above the noise training has shown, scores grow too short to tell how much it is. So wherever
# noise is wider than a spacing, a sample is looked at in a larger scale too: if that reads more,
# and more than the network knows, the larger scale is the right one. Unless it is a thin part,
# whose two sides look like noise from afar: then denoising a sample at the usual scale leaves next
# to nothing to denoise (5 % of the noise on plates with 3 and 4 %, 8 to 9 % with 5 %; 25 % and more
# where it was far too wide). These readings belong to the weights: after a release, see `python -m
# benchmarks.do_no_harm`.
LARGER_SCALE_FROM = 1.0
LARGER_SCALE = 2.5
LEAST_FACTOR = 1.3
READS_MORE = 1.15
KNOWN_NOISE = 0.042
SURELY_WIDE = 0.0295
SETTLED = 0.075
TRIAL_STEPS = 5
LEAST_SPACING = 0.0035
SAMPLE_POINTS = 4_000
TRUSTED_POINTS = 1_000

# Noise far above what training has shown hardly moves the readings, but shows in where the points
# are: they fill space at a distance of four times the largest noise trained on. On 15 validation
# shapes and 8 thin ones (training/LOG.md): at most 0.201 at 3 % noise and 0.226 at 4 %, at least
# 0.216 at 7 % and 0.239 at 10 %.
FULL_WITHIN = 0.12
FULL = 0.21

# The frame of a cloud no larger than that is chosen by all of it, whatever its tiles.
FRAMED_WHOLE = 150_000

# The survey looks at this many places, at so many points around each, and trusts the inner ones.
PLACES = 12
PLACE_POINTS = 8_000
PLACE_TRUSTED_POINTS = 2_000


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

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with all digits."""
        values = asdict(self)
        values["frame"]["centre"] = self.frame.centre.tolist()
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Survey:
        """The survey that `to_dict` was asked for."""
        frame = values["frame"] | {"centre": np.array(values["frame"]["centre"])}
        noise = values["sigma"]
        return cls(
            frame=CloudFrame(**frame),
            reference=values["reference"],
            levels=tuple(values["levels"]),
            sigma=None if noise is None else {int(level): noise[level] for level in noise},
            gain=values["gain"],
        )

    def scale_of(self, level: int) -> float:
        """Input units per unit of the network's frame at a density level."""
        return float(self.frame.scale * LEVEL_FACTOR**level)

    @property
    def network_spacing(self) -> float:
        """The typical spacing in the network's frame, the same at every level."""
        return self.frame.spacing / self.frame.scale

    @property
    def zoomed_out(self) -> Survey | None:
        """The survey at a larger scale; None where the spacing leaves too little room for one."""
        factor = min(LARGER_SCALE, self.network_spacing / LEAST_SPACING)
        if factor < LEAST_FACTOR:
            return None
        return replace(self, frame=replace(self.frame, scale=self.frame.scale * factor))


def noise_fills_space(survey: Survey, level: int, points: Float64, trusted: Float64) -> bool:
    """
    Whether noise is so wide that at the scale of a survey points lie on no surface.

    Parameters
    ----------
    points : (n, 3) of a density level, in input units.
    trusted : (m, 3) those of them that see all around them.
    """
    return fullness(points, trusted, FULL_WITHIN * survey.scale_of(level)) > FULL


def may_be_too_wide(survey: Survey, sigma: float) -> bool:
    """Whether a look in a larger scale is worth it, for noise in the network's frame."""
    return sigma > LARGER_SCALE_FROM * survey.network_spacing


def reads_more(
    sampler: Sampler, survey: Survey, level: int, points: Float64, scores: Float64, sigma: float
) -> Survey | None:
    """
    The survey at a larger scale, if points look noisier in it and are not just thin.

    Parameters
    ----------
    points : (n, 3) of a density level, nearest to their middle first, in input units.
    scores : (m, 3) of the first of them, in the network's frame.
    sigma : the noise as all points read, in the network's frame.
    """
    larger = survey.zoomed_out
    if larger is None:
        return None
    usual, scale = survey.scale_of(level), larger.scale_of(level)
    reading = sampler.estimate_sigma(scores, survey.network_spacing)
    found = sampler.first_scores((points - points.mean(axis=0)) / scale, wanted=len(scores))
    after = sampler.estimate_sigma(found, larger.network_spacing) * scale
    if not _is_wider(after, reading * usual, usual):
        return None
    if max(sigma, reading) < SURELY_WIDE and settles(sampler, survey, level, points, len(scores)):
        return None
    return larger


def settles(
    sampler: Sampler, survey: Survey, level: int, points: Float64, trusted: int = TRUSTED_POINTS
) -> bool:
    """
    Whether denoising a sample at the usual scale leaves next to no noise.

    Parameters
    ----------
    points : (n, 3) of a density level, nearest to their middle first, in input units.
    trusted : how many of the first see all around them.
    """
    noisy = (points - points.mean(axis=0)) / survey.scale_of(level)

    def noise_of(scores: Float64) -> float:
        return sampler.estimate_sigma(scores[:trusted], survey.network_spacing)

    before = 0.0

    def judge(look: FirstLook) -> Verdict:
        nonlocal before
        before = noise_of(look.scores)
        return Verdict(before)

    # What is left after even times is what SETTLED was read at.
    even = replace(sampler, options=replace(sampler.options, bend=1.0, amends=0.0))
    outcome = even.run(
        noisy,
        steps=TRIAL_STEPS,
        eta=0.0,
        judge=judge,
        rng=np.random.default_rng(0),
        report=lambda progress: None,
    )
    left = sampler.first_scores(outcome.positions, wanted=trusted)
    return noise_of(left) < SETTLED * before


def _is_wider(after: float, before: float, scale: float) -> bool:
    """Whether noise read in a larger scale is more than before, and than is known at `scale`."""
    return after > max(READS_MORE * before, KNOWN_NOISE * scale)


def nearest_first(points: Float64, place: Float64) -> Int64:
    """The order (N,) of points (N, 3) by their distance to a place (3,)."""
    return np.argsort(np.sum((points - place) ** 2, axis=1), kind="stable")


def look_at_whole(points: Float64, around: Surroundings | None = None) -> Survey:
    """Frame and density levels of points (N, 3), distinct and finite, N >= 1."""
    frame = frame_cloud(points)
    spacing = (around or surroundings(points)).spacing
    reference = float(np.median(spacing))
    return Survey(frame, reference, common_levels(level_of(spacing, reference)))


def survey_store(
    sampler: Sampler, store: PointSource, sample: Float64, near: Neighbourhoods | None = None
) -> Survey:
    """
    Measure spacing, density levels and noise of a whole cloud, before any of it is moved.

    Parameters
    ----------
    sample : (M, 3) points that stand for the cloud. Where the survey looks depends on them, not on
        the tiles, so that tiles of another size find the same.
    near : of the store, where it is known how far tiles reach.
    """
    places = []
    if len(store.tiling) > 1 or store.count > FRAMED_WHOLE:
        near = near or Neighbourhoods(store)
        places = [_place(near, seed) for seed in _seeds(sample)]
    if store.count <= FRAMED_WHOLE:
        tiles = [store.read(tile) for tile in range(len(store.tiling))]
        whole, _ = distinct_points(np.concatenate(tiles))
        around = surroundings(whole)
        survey = look_at_whole(whole, around)
        if not places:
            places = [_Place(whole, around, np.ones(len(whole), dtype=bool))]
    else:
        survey = _look_at_places(places)
    measured = _measure_noise(sampler, places, survey)
    while True:
        full = _fill_space(survey, places)
        larger = survey.zoomed_out
        wide = full or may_be_too_wide(survey, measured.network_sigma)
        if larger is None or not wide:
            break
        again = _measure_noise(sampler, places, larger)
        if not full:
            grown = again.network_sigma * larger.frame.scale
            read = measured.network_sigma * survey.frame.scale
            if not _is_wider(grown, read, survey.frame.scale):
                break
            if measured.network_sigma < SURELY_WIDE and _settle(sampler, survey, places):
                break
        survey, measured = larger, again
    sigma = {}
    for level, look in measured.looks.items():
        sigma[level] = sampler.read_sigma(look, survey.network_spacing) * survey.scale_of(level)
    return replace(survey, sigma=sigma, gain=measured.gain)


def _fill_space(survey: Survey, places: Sequence[_Place]) -> bool:
    """Whether noise fills space at most of some places."""
    found = [noise_fills_space(survey, 0, p.points, p.points[p.trusted]) for p in places]
    return 2 * sum(found) > len(found)


def _settle(sampler: Sampler, survey: Survey, places: Sequence[_Place]) -> bool:
    """Whether samples of most of three places settle at the usual scale."""
    few = places[:: max(1, len(places) // 3)][:3]
    found = [settles(sampler, survey, 0, place.points[:SAMPLE_POINTS]) for place in few]
    return 2 * sum(found) > len(found)


def _measure_noise(sampler: Sampler, places: Sequence[_Place], survey: Survey) -> _Noise:
    """The noise of every density level, from a first look at some places."""
    seen = [_look_at(sampler, place, survey) for place in places]
    levels = np.concatenate([s.levels for s in seen])
    look = FirstLook.together([s.look for s in seen])
    region = np.concatenate([s.region for s in seen])
    overall = sampler.estimate_sigma(look.scores, survey.network_spacing)
    of_level = {}
    for level in survey.levels:
        here = levels == level
        of_level[level] = look.rows(here) if here.sum() >= PLACE_TRUSTED_POINTS // 10 else look
    return _Noise(overall, of_level, level_of_regions(region))


@dataclass(frozen=True)
class _Noise:
    """Noise in the network's frame, looks that stand for each level, and the gain level."""

    network_sigma: float
    looks: dict[int, FirstLook]
    gain: float


@dataclass(frozen=True)
class _Place:
    """Points (n, 3) around a place, nearest first, and which of them (n,) see all around them."""

    points: Float64
    around: Surroundings
    trusted: Bools

    def levels(self, survey: Survey) -> Int64:
        """The density level (n,) of every point."""
        return nearest_level(level_of(self.around.spacing, survey.reference), survey.levels)


@dataclass(frozen=True)
class _Seen:
    """Of a place's m trusted points: a look in the scale of each one's level, levels, region."""

    look: FirstLook
    levels: Int64
    region: Float64


def _seeds(sample: Float64) -> list[Float64]:
    """Points that stand for equal parts of a sample (M, 3)."""
    cells = split_evenly(sample, PLACES)
    cell = cells.tile_of(sample)
    seeds = []
    for number in range(len(cells)):
        inside = sample[cell == number]
        middle = np.median(inside, axis=0)
        seeds.append(inside[np.sum((inside - middle) ** 2, axis=1).argmin()])
    return seeds


def _place(near: Neighbourhoods, seed: Float64) -> _Place:
    tile = int(near.store.tiling.tile_of(seed[None])[0])
    points = np.concatenate([near.store.read(tile), near.around(tile)])
    points, _ = distinct_points(points)
    points = points[nearest_first(points, seed)[:PLACE_POINTS]]
    trusted = np.arange(len(points)) < PLACE_TRUSTED_POINTS
    return _Place(points, surroundings(points), trusted)


def _look_at_places(places: Sequence[_Place]) -> Survey:
    """Frame and density levels of a cloud from some places of it."""
    spacing = float(np.median([typical_spacing(place.points) for place in places]))
    local = np.concatenate([place.around.spacing[place.trusted] for place in places])
    reference = float(np.median(local))
    centre = np.mean([place.points.mean(axis=0) for place in places], axis=0)
    levels = common_levels(level_of(local, reference))
    return Survey(frame_by_spacing(centre, spacing), reference, levels)


def _look_at(sampler: Sampler, place: _Place, survey: Survey) -> _Seen:
    levels = place.levels(survey)
    centred = place.points - place.points.mean(axis=0)
    looks = {}
    for level in np.unique(levels[place.trusted]).tolist():
        looks[level] = sampler.first_look(centred / survey.scale_of(level))
    lengths = np.zeros_like(place.points)
    rows, parts = [], []
    for level, look in looks.items():
        here = levels == level
        lengths[here] = look.scores[here] * survey.scale_of(level)
        rows.append(np.flatnonzero(here & place.trusted))
        parts.append(look.rows(rows[-1]))
    region = measure_gain(lengths, place.around).region
    seen = np.concatenate(rows)
    return _Seen(FirstLook.together(parts), levels[seen], region[seen])

"""Clouds of any size: tile after tile, each with as much of its surroundings as it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.geometry.density import (
    Surroundings,
    common_levels,
    level_of,
    nearest_level,
    surroundings,
)
from pointmend.geometry.frames import frame_by_spacing, frame_cloud
from pointmend.geometry.neighbours import typical_spacing
from pointmend.geometry.ordering import distinct_points
from pointmend.geometry.outliers import find_outliers
from pointmend.geometry.tiles import Tiling, split_evenly

from .algorithm import Progress, Report, Sampler
from .gain import level_of_regions, measure_gain
from .region import (
    HALO,
    READS_MORE,
    WIDE_NOISE,
    Moved,
    Settings,
    Survey,
    TooNoisy,
    denoise_region,
)

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

# The frame of a cloud no larger than that is chosen by all of it, whatever its tiles.
FRAMED_WHOLE = 150_000

# The survey looks at this many places, at so many points around each, and trusts the inner ones.
PLACES = 12
PLACE_POINTS = 8_000
TRUSTED_POINTS = 2_000

# Points of a tile whose neighbours tell how far its points reach.
PROBES = 300


class PointStore(Protocol):
    """Where the points of a cloud lie, tile by tile; all of them finite."""

    @property
    def tiling(self) -> Tiling:
        """How space is divided."""

    @property
    def count(self) -> int:
        """Points in all."""

    def read(self, tile: int) -> Float64:
        """The points (n, 3) of a tile as they came."""

    def write(self, tile: int, moved: Moved) -> None:
        """Keep what became of a tile's points, in the order `read` gave them."""


class MemoryStore:
    """
    A cloud in memory.

    Parameters
    ----------
    points : (N, 3) finite.
    tiling : of space.

    Attributes
    ----------
    found : what became of the points, in their own order.
    """

    def __init__(self, points: Float64, tiling: Tiling) -> None:
        self.tiling = tiling
        self._points = points
        tile = tiling.tile_of(points)
        order = np.argsort(tile, kind="stable")
        cuts = np.searchsorted(tile[order], np.arange(1, len(tiling)))
        self._rows = np.split(order, cuts)
        self.found = Moved.nothing(len(points))

    @property
    def count(self) -> int:
        """Points in all."""
        return len(self._points)

    def read(self, tile: int) -> Float64:
        """The points (n, 3) of a tile."""
        return self._points[self._rows[tile]]

    def write(self, tile: int, moved: Moved) -> None:
        """Keep what became of them."""
        self.found.put(self._rows[tile], moved)
        self.found = replace(self.found, times=moved.times)


@dataclass(frozen=True)
class Neighbourhoods:
    """The tiles of a store with their surroundings."""

    store: PointStore
    reaches: dict[int, float]

    def reach(self, tile: int) -> float:
        """How far the points of a tile can matter to others, in input units."""
        if tile not in self.reaches:
            points = self.store.read(tile)
            self.reaches[tile] = HALO * _local_spacing(points) if len(points) else 0.0
        return self.reaches[tile]

    def around(self, tile: int) -> Float64:
        """The points (m, 3) of other tiles that can matter to a tile's points."""
        tiling = self.store.tiling
        gaps = tiling.gaps(tile)
        pieces = [np.zeros((0, 3))]
        for other in np.flatnonzero(np.arange(len(tiling)) != tile).tolist():
            reach = self.reach(other) if gaps[other] < np.inf else 0.0
            if gaps[other] <= reach:
                points = self.store.read(other)
                pieces.append(points[tiling.distance(tile, points) <= reach])
        return np.concatenate(pieces)


def _local_spacing(points: Float64) -> float:
    """The local spacing that nineteen of twenty points (n, 3) stay below."""
    probes = points[:: max(1, len(points) // PROBES)]
    k = min(16, len(points))
    distance, _ = cKDTree(points).query(probes, k=k)
    farthest = distance.reshape(len(probes), k)[:, -1]
    return float(np.percentile(farthest, 95.0) * np.sqrt(np.pi / k))


def tiles_for(points: int, tile_points: int) -> int:
    """How many tiles a cloud needs."""
    return max(1, -(-points // tile_points))


def look_at_whole(points: Float64) -> Survey:
    """Frame and density levels of points (N, 3), distinct and finite, N >= 1."""
    frame = frame_cloud(points)
    spacing = surroundings(points).spacing
    reference = float(np.median(spacing))
    return Survey(frame, reference, common_levels(level_of(spacing, reference)))


def survey_store(sampler: Sampler, store: PointStore, sample: Float64) -> Survey:
    """
    Measure spacing, density levels and noise of a whole cloud, before any of it is moved.

    Parameters
    ----------
    sample : (M, 3) points that stand for the cloud. Where the survey looks depends on them, not on
        the tiles, so that tiles of another size find the same.
    """
    places = []
    if len(store.tiling) > 1 or store.count > FRAMED_WHOLE:
        places = [_place(store, seed) for seed in _seeds(sample)]
    if store.count <= FRAMED_WHOLE:
        tiles = [store.read(tile) for tile in range(len(store.tiling))]
        whole, _ = distinct_points(np.concatenate(tiles))
        survey = look_at_whole(whole)
        if not places:
            places = [_Place(whole, surroundings(whole), np.ones(len(whole), dtype=bool))]
    else:
        survey = _look_at_places(places)
    measured = _measure_noise(sampler, places, survey)
    while measured.network_sigma > WIDE_NOISE * survey.network_spacing:
        larger = survey.zoomed_out
        if larger.frame.scale < 1.3 * survey.frame.scale:
            break
        again = _measure_noise(sampler, places, larger)
        grown = again.network_sigma * larger.frame.scale
        if grown <= READS_MORE * measured.network_sigma * survey.frame.scale:
            break
        survey, measured = larger, again
    return replace(survey, sigma=measured.sigma, gain=measured.gain)


def _measure_noise(sampler: Sampler, places: Sequence[_Place], survey: Survey) -> _Noise:
    """The noise of every density level, from the first scores at some places."""
    scores = [_first_scores(sampler, place, survey) for place in places]
    inner = [place.trusted for place in places]
    levels = np.concatenate([s.levels[i] for s, i in zip(scores, inner)])
    vectors = np.concatenate([s.scores[i] for s, i in zip(scores, inner)])
    region = np.concatenate([s.region[i] for s, i in zip(scores, inner)])
    sigma = {}
    overall = sampler.estimate_sigma(vectors, survey.network_spacing)
    for level in survey.levels:
        here = vectors[levels == level]
        enough = len(here) >= TRUSTED_POINTS // 10
        ratio = sampler.estimate_sigma(here, survey.network_spacing) if enough else overall
        sigma[level] = ratio * survey.scale_of(level)
    return _Noise(overall, sigma, level_of_regions(region))


@dataclass(frozen=True)
class _Noise:
    """Noise in the network's frame, that of every level in input units, and the gain level."""

    network_sigma: float
    sigma: dict[int, float]
    gain: float


@dataclass(frozen=True)
class _Place:
    """Points (n, 3) around a place, nearest first, and which of them (n,) see all around them."""

    points: Float64
    around: Surroundings
    trusted: Bools


@dataclass(frozen=True)
class _Scores:
    """Of a place's points: scores (n, 3) each at the scale of its level, levels, noise region."""

    scores: Float64
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


def _place(store: PointStore, seed: Float64) -> _Place:
    tile = int(store.tiling.tile_of(seed[None])[0])
    points = np.concatenate([store.read(tile), Neighbourhoods(store, {}).around(tile)])
    points, _ = distinct_points(points)
    distance = np.sum((points - seed) ** 2, axis=1)
    nearest = np.argsort(distance, kind="stable")[:PLACE_POINTS]
    points = points[nearest]
    trusted = np.arange(len(points)) < TRUSTED_POINTS
    return _Place(points, surroundings(points), trusted)


def _look_at_places(places: Sequence[_Place]) -> Survey:
    """Frame and density levels of a cloud from some places of it."""
    spacing = float(np.median([typical_spacing(place.points) for place in places]))
    local = np.concatenate([place.around.spacing[place.trusted] for place in places])
    reference = float(np.median(local))
    centre = np.mean([place.points.mean(axis=0) for place in places], axis=0)
    levels = common_levels(level_of(local, reference))
    return Survey(frame_by_spacing(centre, spacing), reference, levels)


def _first_scores(sampler: Sampler, place: _Place, survey: Survey) -> _Scores:
    around = place.around
    levels = nearest_level(level_of(around.spacing, survey.reference), survey.levels)
    scores = np.zeros_like(place.points)
    lengths = np.zeros_like(place.points)
    for level in np.unique(levels[place.trusted]).tolist():
        scale = survey.scale_of(level)
        found = sampler.first_scores((place.points - place.points.mean(axis=0)) / scale)
        here = levels == level
        scores[here], lengths[here] = found[here], found[here] * scale
    return _Scores(scores, levels, measure_gain(lengths, around).region)


def denoise_store(
    sampler: Sampler, store: PointStore, survey: Survey, settings: Settings, report: Report
) -> None:
    """Denoise a store tile by tile; results go back to it."""
    tiles = len(store.tiling)
    neighbourhoods = Neighbourhoods(store, {})
    for tile in range(tiles):
        own = store.read(tile)
        if len(own) == 0:
            continue
        region = np.concatenate([own, neighbourhoods.around(tile)]) if tiles > 1 else own
        outlier = np.zeros(len(region), dtype=bool)
        if settings.outliers is not None:
            outlier = find_outliers(region, settings.outliers)
        # Points in one place are one point to the network, and move together.
        distinct, copies = distinct_points(region[~outlier])
        mine = np.flatnonzero(~outlier[: len(own)])
        place = copies[: len(mine)]
        core = np.zeros(len(distinct), dtype=bool)
        core[place] = True
        result = Moved.nothing(len(own))
        result.outlier[:] = outlier[: len(own)]

        def tell(
            state: Progress,
            tile: int = tile,
            own: Float64 = own,
            mine: Int64 = mine,
            place: Int64 = place,
        ) -> None:
            if state.positions is not None:
                whole = own.copy()
                whole[mine] = state.positions[place]
                state = replace(state, positions=whole if tiles == 1 else None)
            report(replace(state, region=tile, regions=tiles))

        while core.any():
            try:
                moved = denoise_region(sampler, distinct, core, survey, settings, tell, tile)
            except TooNoisy as noisy:
                survey = noisy.survey
                continue
            result.put(mine, moved.rows(place))
            result = replace(result, times=moved.times)
            break
        store.write(tile, result)

"""Denoising: clouds of any size, tile after tile with the surroundings each depends on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pointmend.geometry.ordering import distinct_points
from pointmend.geometry.outliers import find_outliers

from .algorithm import Progress, Report, Sampler
from .moved import Moved
from .region import TooNoisy, denoise_region
from .settings import Settings
from .store import Neighbourhoods, PointStore
from .survey import Survey


def denoise_store(
    sampler: Sampler, store: PointStore, survey: Survey, settings: Settings, report: Report
) -> None:
    """Denoise a store tile by tile; results go back to it."""
    neighbourhoods = Neighbourhoods(store)
    for tile in range(len(store.tiling)):
        moved = denoise_tile(sampler, neighbourhoods, tile, survey, settings, report)
        if moved is not None:
            store.write(tile, moved)


def denoise_tile(
    sampler: Sampler,
    neighbourhoods: Neighbourhoods,
    tile: int,
    survey: Survey,
    settings: Settings,
    report: Report,
) -> Moved | None:
    """
    What becomes of one tile's points, whichever tiles were worked on before; None if it has none.

    Parameters
    ----------
    neighbourhoods : of the store that the tile belongs to.
    survey : of the whole cloud.
    """
    store = neighbourhoods.store
    tiles = len(store.tiling)
    own = store.read(tile)
    if len(own) == 0:
        return None
    if settings.local_noise:
        survey = replace(survey, sigma=None, gain=None)
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

    def tell(state: Progress) -> None:
        if state.positions is not None:
            whole = own.copy()
            whole[mine] = state.positions[place]
            state = replace(state, positions=whole)
        report(replace(state, region=tile, regions=tiles))

    while core.any():
        try:
            moved = denoise_region(sampler, distinct, core, survey, settings, tell, tile)
        except TooNoisy as noisy:
            survey = noisy.survey
            continue
        result.put(mine, moved.rows(place))
        return replace(result, times=moved.times)
    return result

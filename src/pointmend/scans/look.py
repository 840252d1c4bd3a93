"""Room `scans`: what a file holds and how noisy it is, whatever its size."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointmend.cloud.files import PIECE_ROWS, open_pieces, read
from pointmend.cloud.point_cloud import PointCloud
from pointmend.denoising.denoiser import Denoiser, NoiseEstimate, noise_of
from pointmend.denoising.survey import survey_store
from pointmend.geometry.ordering import valid_rows

from .budget import Budget
from .pipeline import sorted_into_tiles

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Look:
    """
    What there is to say about a file; lengths in its units.

    Attributes
    ----------
    points, invalid : how many there are, and how many are not finite.
    duplicates : points that repeat another; None when there are too many points to tell.
    low, high : (3,) bounds; NaN when there are none.
    sample : a cloud of some or all of the points, with attributes and metadata.
    estimate : spacing and noise.
    """

    points: int
    invalid: int
    duplicates: int | None
    low: Float64
    high: Float64
    sample: PointCloud
    estimate: NoiseEstimate


def look_at(denoiser: Denoiser, path: Path, budget: Budget) -> Look:
    """Look at a file within a budget of memory (`plan_file`)."""
    if budget.streamed:
        return _look_streamed(denoiser, path, budget)
    cloud = read(path)
    finite = cloud.positions[valid_rows(cloud.positions)]
    return Look(
        len(cloud),
        len(cloud) - len(finite),
        len(finite) - len(np.unique(finite, axis=0)),
        *cloud.bounds(),
        cloud,
        denoiser.estimate_noise(finite),
    )


def _look_streamed(denoiser: Denoiser, path: Path, budget: Budget) -> Look:
    with open_pieces(path) as reader, tempfile.TemporaryDirectory(prefix="pointmend-") as folder:
        sample = next(reader.pieces(PIECE_ROWS))
        points = sorted_into_tiles(reader, Path(folder), budget.tile_points)
        store, extent = points.store, points.extent
        estimate = NoiseEstimate(0.0, 0.0, in_trained_range=False, nothing_to_gain=True)
        if store.count:
            estimate = noise_of(survey_store(denoiser.sampler, store, points.sample))
        invalid = store.rows - store.count
        return Look(store.rows, invalid, None, extent.low, extent.high, sample, estimate)

"""Room `scans`: denoise a file into another one, in memory or streamed, attributes and all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointmend.cloud.files import (
    PIECE_ROWS,
    Extent,
    format_of,
    open_pieces,
    put_in_place,
    read,
    why_not_in_pieces,
    write,
    write_pieces,
)
from pointmend.cloud.format import PieceReader
from pointmend.cloud.left_behind import all_losses
from pointmend.cloud.point_cloud import PointCloud
from pointmend.denoising.algorithm import Progress
from pointmend.denoising.denoiser import Denoiser, noise_of
from pointmend.denoising.settings import Settings
from pointmend.denoising.store import sample_stride
from pointmend.denoising.survey import survey_store
from pointmend.denoising.tiled import denoise_store
from pointmend.errors import InputError
from pointmend.geometry.ordering import valid_rows
from pointmend.geometry.tiles import Tiling, split_evenly, tiles_for

from .budget import Budget, plan_file
from .marks import Marks, check_marks, marked
from .scratch import ScratchStore, scratch_folder
from .tally import Tally

Float64 = NDArray[np.float64]


def nobody(progress: Progress) -> None:
    """Listen to no report."""


def denoise_file(
    denoiser: Denoiser,
    source: Path,
    target: Path,
    settings: Settings,
    marks: Marks | None = None,
    budget: Budget | None = None,
    report: Callable[[Progress], None] = nobody,
) -> Tally:
    """
    Denoise a file; the output is complete and checked, or not there.

    Parameters
    ----------
    marks : what is written beside the moved points.
    budget : how the work is cut (`plan_file`); by default as half of the machine's memory allows.
    """
    marks = marks or Marks()
    budget = budget or plan_file(source, None)
    options = replace(denoiser.options, tile_points=budget.tile_points)
    denoiser = replace(denoiser, options=options)
    if budget.streamed:
        return _denoise_streamed(denoiser, source, target, settings, marks, report)
    return _denoise_in_memory(denoiser, source, target, settings, marks, report)


def _denoise_in_memory(
    denoiser: Denoiser,
    source: Path,
    target: Path,
    settings: Settings,
    marks: Marks,
    report: Callable[[Progress], None],
) -> Tally:
    cloud = read(source)
    check_marks(cloud, marks, source)
    result = denoiser.run(cloud.positions, settings, report)
    shift = np.where(result.invalid[:, None], 0.0, result.points - cloud.positions)
    tally = Tally(
        sigma=result.sigma,
        spacing=result.spacing,
        in_trained_range=result.in_trained_range,
        schedule=result.schedule,
    )
    tally.add(cloud.positions, shift, result.shares, result.outlier)
    moved = marked(cloud.with_positions(result.points), result.displacement, result.outlier, marks)
    tally.lost = all_losses(moved, format_of(target))
    write(moved, target)
    return tally


def _denoise_streamed(
    denoiser: Denoiser,
    source: Path,
    target: Path,
    settings: Settings,
    marks: Marks,
    report: Callable[[Progress], None],
) -> Tally:
    if format_of(target).pieces is None:
        raise InputError(why_not_in_pieces(target))

    def count_only(state: Progress) -> None:
        # The tiles' points lie in the order of the scratch folder, which means nothing outside.
        report(replace(state, positions=None))

    with open_pieces(source) as reader, put_in_place(target) as part:
        first = next(reader.pieces(1))
        check_marks(first, marks, source)
        with scratch_folder(part) as folder:
            points = sorted_into_tiles(reader, folder, denoiser.options.tile_points)
            store, tally = points.store, Tally()
            if store.count:
                survey = survey_store(denoiser.sampler, store, points.sample)
                known = noise_of(survey)
                denoise_store(denoiser.sampler, store, survey, settings, count_only)
                tally.spacing, tally.in_trained_range = known.spacing, known.in_trained_range
                tally.sigma = noise_level(store, known.sigma, settings)
            write_moved(reader, store, marks, tally, target, part)
    return tally


@dataclass(frozen=True)
class SortedPoints:
    """The points of a file in tiles on disk, a sample (M, 3) of them, and their extent."""

    store: ScratchStore
    sample: Float64
    extent: Extent


def sample_pieces(reader: PieceReader, stride: int, before: int = 0) -> tuple[Float64, Extent]:
    """
    Points (M, 3) that stand for a file, every so many-th, and the extent of all.

    Parameters
    ----------
    before : rows of the same cloud that came in other files.
    """
    picked = [np.zeros((0, 3))]
    extent = Extent()
    for piece in reader.pieces(PIECE_ROWS):
        positions = piece.positions[-(before + extent.count) % stride :: stride]
        picked.append(positions[valid_rows(positions)])
        extent.add(piece)
    return np.concatenate(picked), extent


def sorted_into_tiles(reader: PieceReader, folder: Path, tile_points: int) -> SortedPoints:
    """Sort the points of a file into tiles."""
    sample, extent = sample_pieces(reader, sample_stride(reader.count))
    tiling = split_evenly(sample, tiles_for(reader.count, tile_points))
    store = sort_pieces(reader, folder, tiling)
    return SortedPoints(store, sample, extent)


def sort_pieces(reader: PieceReader, folder: Path, tiling: Tiling) -> ScratchStore:
    """Sort the points of a file into tiles that are there already."""
    return ScratchStore.sort(
        folder, tiling, lambda: (piece.positions for piece in reader.pieces(PIECE_ROWS))
    )


def noise_level(store: ScratchStore, surveyed: float, settings: Settings) -> float:
    """The noise to report of a denoised store: as given, as surveyed, or the mean of its tiles."""
    if settings.sigma is not None:
        return settings.sigma
    return store.mean_sigma() if settings.local_noise else surveyed


def write_moved(
    reader: PieceReader, store: ScratchStore, marks: Marks, tally: Tally, target: Path, part: Path
) -> None:
    """
    Write a file's points with what became of them, in its own order, and count them.

    Parameters
    ----------
    store : holds the results of the file that `reader` reads.
    tally : is added to.
    target : says which format is written; it can be written in pieces.
    part : the temporary file of `put_in_place(target)`.
    """
    chosen = format_of(target)
    assert chosen.pieces is not None
    tally.schedule = store.times
    count = store.rows - (store.outliers() if marks.drop_outliers else 0)
    moved = _moved_pieces(reader, store, marks, tally)
    template = next(moved)
    tally.lost = all_losses(template, chosen)
    write_pieces(chosen.pieces, chosen, count, chain((template,), moved), part)


def _moved_pieces(
    reader: PieceReader, store: ScratchStore, marks: Marks, tally: Tally
) -> Iterator[PointCloud]:
    start = 0
    for piece in reader.pieces(PIECE_ROWS):
        found = store.results(start, len(piece))
        start += len(piece)
        tally.add(piece.positions, found.shift, found.shares, found.outlier)
        moved = piece.with_positions(piece.positions + found.shift)
        yield marked(moved, np.linalg.norm(found.shift, axis=1), found.outlier, marks)

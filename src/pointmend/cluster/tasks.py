"""
Room `cluster`: what a worker does.

Every task takes the path of a work folder and a number, and may run in any process, on any machine
that sees the folder, in any order and more than once: it leaves the same behind. What it returns
are plain values for the list of what is finished. Nothing heavy is imported until a task runs,
because the scheduler reads these names too.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache, wraps
from pathlib import Path
from time import monotonic, process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from pointmend import __version__
from pointmend.errors import InputError

from .plan import Plan, fingerprint
from .work import WorkFolder

if TYPE_CHECKING:
    from pointmend.denoising.denoiser import Denoiser
    from pointmend.denoising.store import Neighbourhoods
    from pointmend.denoising.survey import Survey

    from .joined import JoinedStore

Value = dict[str, Any]
Task = Callable[[str, int], Value]


def timed(task: Task) -> Task:
    """The same task, which also tells what it cost: seconds, and those of the CPU."""

    @wraps(task)
    def measured(work: str, number: int) -> Value:
        began, cpu_began = monotonic(), process_time()
        value = task(work, number)
        return value | {"seconds": monotonic() - began, "cpu_seconds": process_time() - cpu_began}

    return measured


@timed
def sample_part(work: str, number: int) -> Value:
    """Read a file for the first time, and keep points that stand for it."""
    from pointmend.cloud.files import open_pieces
    from pointmend.denoising.store import sample_stride
    from pointmend.scans.pipeline import sample_pieces

    plan, folder = _plan(work), WorkFolder(Path(work))
    plan.parts[number].check_unchanged()
    before = sum(part.points for part in plan.parts[:number])
    with open_pieces(Path(plan.parts[number].source)) as reader:
        sample, _ = sample_pieces(reader, sample_stride(plan.points), before)
    folder.save_at(folder.sample(number), sample)
    return {}


@timed
def sort_part(work: str, number: int) -> Value:
    """Sort the points of a file into tiles; returns which these are, and how many points each."""
    from pointmend.cloud.files import open_pieces
    from pointmend.scans.pipeline import sort_pieces

    plan, folder = _plan(work), WorkFolder(Path(work))
    plan.parts[number].check_unchanged()
    place = folder.sorted(number)
    own = Path(tempfile.mkdtemp(prefix=".", dir=place.parent))
    try:
        with open_pieces(Path(plan.parts[number].source)) as reader:
            store = sort_pieces(reader, own, folder.tiling())
        # What an earlier attempt left here was not written down as finished.
        shutil.rmtree(place, ignore_errors=True)
        own.rename(place)
    finally:
        shutil.rmtree(own, ignore_errors=True)
    tiles = np.flatnonzero(store.counts)
    return {"rows": store.rows, "tiles": tiles.tolist(), "counts": store.counts[tiles].tolist()}


@timed
def measure_reach(work: str, number: int) -> Value:
    """Measure how far the points of a tile can matter to others."""
    from pointmend.denoising.store import Neighbourhoods

    return {"reach": Neighbourhoods(_store(work)).reach(number)}


@timed
def survey_all(work: str, number: int) -> Value:
    """Measure spacing and noise of the whole cloud at some places; there is one such task."""
    from pointmend.denoising.survey import survey_store

    folder = WorkFolder(Path(work))
    parts = range(len(_plan(work).parts))
    sample = np.concatenate([np.load(folder.sample(part), allow_pickle=False) for part in parts])
    near = _neighbourhoods(work)
    return survey_store(_denoiser(work).sampler, near.store, sample, near).to_dict()


@timed
def denoise_one(work: str, number: int) -> Value:
    """Denoise a tile and keep the result; returns its checksum and number of points."""
    from pointmend.denoising.tiled import denoise_tile

    moved = denoise_tile(
        _denoiser(work).sampler,
        _neighbourhoods(work),
        number,
        _survey(work),
        _plan(work).settings,
        lambda progress: None,
    )
    if moved is None:
        raise InputError(f"tile {number} has no points; delete {work} and run the command again")
    checksum = WorkFolder(Path(work)).write_result(number, moved)
    return {"checksum": checksum, "points": len(moved.shift)}


@timed
def merge_part(work: str, number: int) -> Value:
    """Write an output: the points of a file in its own order, moved as their tiles say."""
    from pointmend.cloud.files import open_pieces, put_in_place
    from pointmend.denoising.denoiser import noise_of
    from pointmend.scans.pipeline import noise_level, write_moved
    from pointmend.scans.scratch import ScratchStore
    from pointmend.scans.tally import Tally

    plan, folder, joined = _plan(work), WorkFolder(Path(work)), _store(work)
    part = plan.parts[number]
    part.check_unchanged()
    counts = joined.counts(number)
    store = ScratchStore(folder.sorted(number), joined.tiling, counts, part.points)
    for tile in np.flatnonzero(counts).tolist():
        store.write(tile, folder.read_result(tile).rows(joined.rows(tile, number)))
    tally = Tally()
    if joined.count:
        known = noise_of(_survey(work))
        tally.spacing, tally.in_trained_range = known.spacing, known.in_trained_range
        tally.sigma = noise_level(store, known.sigma, plan.settings)
    target = Path(part.target)
    with open_pieces(Path(part.source)) as reader, put_in_place(target) as temporary:
        write_moved(reader, store, plan.marks, tally, target, temporary)
        part.check_unchanged()
    return {"tally": asdict(tally), "output": asdict(fingerprint(target))}


# What a process needs again and again is read once. A work folder belongs to one plan for ever, so
# that what was read under its name stays right.


@lru_cache(maxsize=1)
def _plan(work: str) -> Plan:
    plan = WorkFolder(Path(work)).plan()
    if plan.version != __version__:
        raise InputError(
            f"a worker has pointmend {__version__}, but {plan.version} made the plan; "
            "install one version everywhere"
        )
    return plan


@lru_cache(maxsize=1)
def _denoiser(work: str) -> Denoiser:
    """The model, which each process loads once."""
    import torch

    from pointmend.denoising.denoiser import Denoiser

    plan = _plan(work)
    torch.set_num_threads(plan.threads)
    return Denoiser.load(WorkFolder(Path(work)).model, plan.device, plan.options)


@lru_cache(maxsize=1)
def _store(work: str) -> JoinedStore:
    from .joined import JoinedStore

    folder = WorkFolder(Path(work))
    return JoinedStore(folder, folder.tiling(), folder.load("segments"))


@lru_cache(maxsize=1)
def _neighbourhoods(work: str) -> Neighbourhoods:
    from pointmend.denoising.store import Neighbourhoods

    reaches = WorkFolder(Path(work)).load("reaches")
    return Neighbourhoods(_store(work), dict(enumerate(reaches.tolist())))


@lru_cache(maxsize=1)
def _survey(work: str) -> Survey:
    from pointmend.denoising.survey import Survey

    return Survey.from_dict(json.loads(WorkFolder(Path(work)).survey.read_text()))

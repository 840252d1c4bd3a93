"""
Room `cluster`: how long a plan would take on clusters that are not here.

A discrete simulation of the stages of `run`: workers take one task after the other; each task waits
for the scheduler, which hands out one at a time, then for the file system, which all workers share,
and then computes. Nothing else is assumed. Random is only how large a tile turns out.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.tiles import tiles_for
from pointmend.scans.budget import region_points

Float64 = NDArray[np.float64]

# Bytes that are kept of a point while it waits for its tile, and of its result (`scratch`).
WAITING, RESULT = 32, 33

# Tiles whose points are read for a tile: itself and its neighbours on a surface.
TILES_READ = 9

# How evenly tiles come out: the spread of their sizes, cut by a hundred sampled points or more.
UNEVEN = 0.1


@dataclass(frozen=True)
class Costs:
    """
    What work costs one worker, in CPU seconds.

    Attributes
    ----------
    reading, sorting, measuring, writing : per point of these stages.
    surveying : once; no other task can run beside it.
    region : per point of a tile and its surroundings.
    lookup : per tile and tile of the plan, to find which are near.
    task : of the scheduler and of the list of what is finished, for a task.
    start : until a worker has started, and has read the model.
    """

    reading: float
    sorting: float
    measuring: float
    writing: float
    surveying: float
    region: float
    lookup: float
    task: float
    start: float


# By `python -m benchmarks.cluster` (docs/cluster.md): one process, one step, 5,089,446 points in 34
# tiles; `lookup` is that of `Neighbourhoods.around` among 1,000 and 7,000 tiles.
MEASURED = Costs(
    reading=4.2e-7,
    sorting=9.2e-7,
    measuring=2.7e-7,
    writing=1.44e-6,
    surveying=8.1,
    region=3.71e-5,
    lookup=3.2e-7,
    task=8.5e-3,
    start=5.0,
)


@dataclass(frozen=True)
class Job:
    """
    What is to be denoised.

    Attributes
    ----------
    points, file_points, tile_points : of all files, of a file, of a tile.
    file_bytes : of a point in its file.
    effort : what the steps of the sampler cost, against what `Costs.region` was measured with.
    """

    points: int
    file_points: int = 20_000_000
    tile_points: int = 150_000
    file_bytes: float = 8.0
    effort: float = 1.0

    @property
    def halo_share(self) -> float:
        """The share of what is computed that is thrown away: it was around a tile, not in it."""
        return 1.0 - min(self.points, self.tile_points) / self._region

    @property
    def _region(self) -> int:
        return region_points(self.points, self.tile_points)


@dataclass(frozen=True)
class Cluster:
    """
    Who does the work.

    Attributes
    ----------
    workers : processes of one thread.
    disk : bytes per second that the file system gives to all of them together.
    speed : of a worker's core against the one that `Costs` was measured on.
    """

    workers: int
    disk: float = 2e9
    speed: float = 1.0


@dataclass(frozen=True)
class Forecast:
    """
    How a job would go.

    Attributes
    ----------
    stages : seconds of each.
    cpu : seconds of work, all workers together.
    seconds : from beginning to end.
    efficiency : share of the workers' time in which they compute.
    scheduler, disk : share of the time in which the scheduler, and the file system, are busy.
    """

    stages: dict[str, float]
    cpu: float
    seconds: float
    efficiency: float
    scheduler: float
    disk: float


class _Clock:
    """The time at which every worker, the scheduler and the file system are free again."""

    def __init__(self, cluster: Cluster, task: float) -> None:
        self.cluster, self.task = cluster, task
        self.now = 0.0
        self.scheduler_busy = self.disk_busy = 0.0

    def stage(self, cpu: Float64, moved: Float64) -> float:
        """
        Let all workers do some tasks, and wait for the last one.

        Parameters
        ----------
        cpu : (n,) seconds of each task on the reference core, in the order they are handed out.
        moved : (n,) bytes that each reads and writes.

        Returns
        -------
        The seconds that it took.
        """
        began = scheduler = disk = self.now
        free = [self.now] * min(self.cluster.workers, max(1, len(cpu)))
        heapify(free)
        seconds = (cpu / self.cluster.speed).tolist()
        waits = (moved / self.cluster.disk).tolist()
        for work, wait in zip(seconds, waits):
            scheduler = max(scheduler, free[0]) + self.task
            disk = max(disk, scheduler) + wait
            heapreplace(free, disk + work)
        self.now = max(free)
        self.scheduler_busy += self.task * len(cpu)
        self.disk_busy += float(moved.sum()) / self.cluster.disk
        return self.now - began


def forecast(job: Job, cluster: Cluster, costs: Costs) -> Forecast:
    """Carry out a job in thought."""
    tiles = tiles_for(job.points, job.tile_points)
    files = tiles_for(job.points, job.file_points)
    rng = np.random.default_rng(0)
    size = np.full(tiles, job.points / tiles)
    if tiles > 1:
        size *= np.clip(1.0 + UNEVEN * rng.standard_normal(tiles), 0.5, 1.5)
    size = np.sort(size)[::-1] * (job.points / size.sum())
    in_file = np.full(files, job.points / files)
    surrounded = job._region / min(job.points, job.tile_points)
    per_tile = costs.region * job.effort * surrounded * size + costs.lookup * tiles
    read_tiles = min(tiles, TILES_READ)
    laid_out = {
        "reading": (costs.reading * in_file, job.file_bytes * in_file),
        "sorting": (costs.sorting * in_file, (2 * job.file_bytes + WAITING) * in_file),
        "measuring": (costs.measuring * size, WAITING * size),
        "surveying": (np.array([costs.surveying]), np.zeros(1)),
        "denoising": (per_tile, (read_tiles * WAITING + RESULT) * size),
        # Sorted rows and results are read, results put in order, written and read again.
        "writing": (
            costs.writing * in_file,
            (WAITING + 3 * RESULT + 3 * job.file_bytes) * in_file,
        ),
    }
    clock = _Clock(cluster, costs.task)
    clock.now = costs.start / cluster.speed
    stages = {name: clock.stage(*work) for name, work in laid_out.items()}
    cpu = sum(float(work.sum()) for work, _ in laid_out.values())
    return Forecast(
        stages=stages,
        cpu=cpu,
        seconds=clock.now,
        efficiency=cpu / cluster.speed / (clock.now * cluster.workers),
        scheduler=clock.scheduler_busy / clock.now,
        disk=clock.disk_busy / clock.now,
    )

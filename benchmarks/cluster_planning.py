"""
What would a billion points cost, and a million million?

    python -m benchmarks.cluster_planning

Simulates runs on clusters that are not here (`pointmend.cluster.simulation`), with the costs that
`python -m benchmarks.cluster` has measured on one machine, and prints how long they take, where the
scheduler, the file system and what is around tiles become the limit, and, as a check, what the
simulation says about the run that was measured. `--disk` changes what is assumed.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from pointmend.cluster.simulation import (
    MEASURED,
    RESULT,
    TILES_READ,
    WAITING,
    Cluster,
    Costs,
    Forecast,
    Job,
    forecast,
)

# The run that MEASURED comes from, on two workers: the job, how long it took, and how much of a
# core a worker had meanwhile (CPU seconds of tiles in one process, over their wall seconds there).
CHECKED = Job(5_089_446, file_points=848_241, file_bytes=6.5)
CHECKED_SECONDS = 562.0
CHECKED_SPEED = 294.3 / 989.7

# What five steps cost against one (`python -m benchmarks.cluster --tiles`).
FIVE_STEPS = 4.0


def duration(seconds: float) -> str:
    for unit, name in ((86400 * 365, "years"), (86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"


def row(workers: int, found: Forecast) -> str:
    """A line of a table."""
    return (
        f"| {workers:,} | {duration(found.seconds)} | {duration(found.cpu)} "
        f"| {found.efficiency:.0%} | {found.scheduler:.0%} | {found.disk:.0%} |"
    )


def table(job: Job, workers: tuple[int, ...], disk: float, costs: Costs) -> None:
    tiles = -(-job.points // job.tile_points)
    print(f"\n{job.points:.0e} points, {tiles:,} tiles of {job.tile_points:,} points, five steps")
    print("| workers | time | work | computing | scheduler busy | file system busy |")
    print("|---|---|---|---|---|---|")
    for count in workers:
        print(row(count, forecast(job, Cluster(count, disk), costs)), flush=True)


def limits(job: Job, disk: float, costs: Costs) -> None:
    """Where each part becomes the limit: workers that one scheduler and one disk can feed."""
    region = job.tile_points / (1.0 - job.halo_share)
    seconds = costs.region * job.effort * region
    moved = (TILES_READ * WAITING + RESULT) * job.tile_points
    print(
        f"| {job.tile_points:,} | {job.halo_share:.0%} | {seconds:.1f} s | {moved / 1e6:.0f} MB "
        f"| {seconds / costs.task:,.0f} | {seconds * disk / moved:,.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--disk", type=float, default=2e9, help="bytes per second for all workers")
    parser.add_argument("--largest", action="store_true", help="also 1e12 points (a minute)")
    options = parser.parse_args()
    found = forecast(CHECKED, Cluster(2, speed=CHECKED_SPEED), MEASURED)
    print(f"check: {found.seconds:.0f} s simulated, {CHECKED_SECONDS:.0f} s measured")
    one, two = (forecast(CHECKED, Cluster(workers), MEASURED).seconds for workers in (1, 2))
    print(f"on free cores: {one:.0f} s with one worker, {two:.0f} s with two")
    print("\n| tile | halo | work | read and written | scheduler feeds | file system feeds |")
    print("|---|---|---|---|---|---|")
    for size in (10_000, 50_000, 150_000, 600_000):
        limits(Job(10**12, tile_points=size, effort=FIVE_STEPS), options.disk, MEASURED)
    table(Job(10**9, effort=FIVE_STEPS), (2, 16, 128, 1024, 4096), options.disk, MEASURED)
    if options.largest:
        job = Job(10**12, effort=FIVE_STEPS)
        table(job, (1024, 8192), options.disk, MEASURED)
        # Cut into blocks of 1e10 points, which are plans of their own, tiles are found at once.
        print("\nin blocks of 1e10 points, one after the other:")
        table(job, (1024, 8192), options.disk, replace(MEASURED, lookup=MEASURED.lookup / 100))


if __name__ == "__main__":
    main()

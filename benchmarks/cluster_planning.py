"""
What would a billion points cost, and a million million?

    python -m benchmarks.cluster_planning

Simulates runs on clusters that are not here (`pointmend.cluster.simulation`), with the costs that
`python -m benchmarks.cluster` has measured on one machine, and prints how long they take, where the
scheduler, the file system and what is around tiles become the limit, and, as a check, what the
simulation says about the run that was measured. `--disk` and `--steps` change what is assumed.
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

# The run that MEASURED comes from: points, files, and what two workers took.
CHECKED = Job(5_096_166, file_points=849_361, file_bytes=6.5)


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
    print(f"\n{job.points:.0e} points, {tiles:,} tiles of {job.tile_points:,}, steps {job.steps:g}")
    print("| workers | time | work | computing | scheduler busy | file system busy |")
    print("|---|---|---|---|---|---|")
    for count in workers:
        print(row(count, forecast(job, Cluster(count, disk), costs)), flush=True)


def limits(job: Job, disk: float, costs: Costs) -> None:
    """Where each part becomes the limit: workers that one scheduler and one disk can feed."""
    region = job.tile_points / (1.0 - job.halo_share)
    seconds = costs.region * job.steps * region
    moved = (TILES_READ * WAITING + RESULT) * job.tile_points
    print(
        f"| {job.tile_points:,} | {job.halo_share:.0%} | {seconds:.1f} s | {moved / 1e6:.0f} MB "
        f"| {seconds / costs.task:,.0f} | {seconds * disk / moved:,.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--disk", type=float, default=2e9, help="bytes per second for all workers")
    parser.add_argument("--steps", type=int, default=5, help="of the sampler")
    parser.add_argument("--largest", action="store_true", help="also 1e12 points (a minute)")
    options = parser.parse_args()
    print("check: the measured job on two workers, as MEASURED has it")
    found = forecast(CHECKED, Cluster(2, 1e9), MEASURED)
    for stage, seconds in found.stages.items():
        print(f"  {stage:<10} {seconds:7.1f} s")
    print(f"  in all     {found.seconds:7.1f} s, {found.cpu:.0f} s of work")
    # A step costs as much as the first look, which is made once: MEASURED is at one step.
    steps = (options.steps + 1) / 2
    print("\n| tile | halo | work | read and written | scheduler feeds | file system feeds |")
    print("|---|---|---|---|---|---|")
    for size in (10_000, 50_000, 150_000, 600_000):
        limits(Job(10**12, tile_points=size, steps=steps), options.disk, MEASURED)
    table(Job(10**9, steps=steps), (2, 16, 128, 1024, 4096), options.disk, MEASURED)
    if options.largest:
        job = Job(10**12, steps=steps)
        table(job, (1024, 4096, 16384), options.disk, MEASURED)
        # Cut into blocks of 1e10 points, which are plans of their own, tiles are found at once.
        print("\nin blocks of 1e10 points, one after the other:")
        table(
            job, (1024, 4096, 16384), options.disk, replace(MEASURED, lookup=MEASURED.lookup / 100)
        )


if __name__ == "__main__":
    main()

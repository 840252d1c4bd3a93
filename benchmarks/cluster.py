"""
Does a cluster of two workers give what one process gives, also when one of them is killed?

    python -m benchmarks.cluster --points 5100000 --files 6 --steps 1

Makes neighbouring LAZ tiles of hilly terrain, denoises them as one cloud in one process
(`--together`) and on a local cluster of two workers (`--cluster local:2`), one of which is killed
with signal 9 at a tile, compares the outputs byte by byte, and prints what every stage cost, how
much faster two workers were, and what dask itself costs for a task. `--tiles` measures instead what
tiles of other sizes cost, each of which is computed with what is around it, and more steps.

Stages are given in CPU seconds, because other work on the machine does not change these much.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sizes import OFFSET, SPACING, height
from pointmend.cloud.files import write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.scans.budget import region_points

STAGES = ("reading", "sorting", "measuring", "surveying", "denoising", "writing")


def make_field(path: Path, number: int, count: int) -> None:
    """A square of terrain beside the one before it, in strips as a flight would record them."""
    side = int(np.sqrt(count))
    rng = np.random.default_rng(number)
    row, column = np.divmod(np.arange(side * side), side)
    x = SPACING * (column + side * number + rng.uniform(-0.35, 0.35, side * side))
    y = SPACING * (row + rng.uniform(-0.35, 0.35, side * side))
    points = np.stack([x, y, height(x, y)], axis=1)
    points += 0.5 * SPACING * rng.standard_normal(points.shape)
    intensity = rng.integers(0, 65535, len(points)).astype(np.uint16)
    write(PointCloud(np.round(points, 3) + OFFSET, {"intensity": intensity}), path)


def noted_tiles(out: Path) -> int:
    """How many tiles a run has noted as done so far."""
    lists = list(out.glob(".pointmend-plan-*/finished.jsonl"))
    return lists[0].read_text().count('"denoising"') if lists else 0


def busy_workers(parent: int) -> list[int]:
    """Worker processes among the children of a run, those that use most CPU time first."""
    import psutil

    children = psutil.Process(parent).children()
    workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    used = {child.pid: sum(child.cpu_times()[:2]) for child in workers}
    return sorted(used, key=lambda pid: -used[pid])


def denoise_command(sources: list[Path], out: Path, words: list[str]) -> list[str]:
    files = [str(source) for source in sources]
    return [sys.executable, "-m", "pointmend", "denoise", *files, "--out", str(out), *words]


def run(sources: list[Path], out: Path, words: list[str], kill_after: int = 0) -> dict[str, float]:
    """Wall and CPU seconds of one run; after so many tiles a worker is killed."""
    out.mkdir()
    began = time.monotonic()
    process = subprocess.Popen([*denoise_command(sources, out, words), "--quiet"])
    ended = 0
    while not ended:
        time.sleep(0.2)
        if kill_after and noted_tiles(out) >= kill_after:
            victim = busy_workers(process.pid)[0]
            os.kill(victim, signal.SIGKILL)
            print(f"killed worker {victim} after {kill_after} tiles", flush=True)
            kill_after = 0
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    assert status == 0, "the run failed"
    assert not kill_after, "the run was over before a worker could be killed"
    return {"wall": time.monotonic() - began, "cpu": usage.ru_utime + usage.ru_stime}


def stage_costs(out: Path) -> dict[str, tuple[int, float, float]]:
    """Tasks, CPU seconds and wall seconds of every stage."""
    [path] = out.glob(".pointmend-plan-*/finished.jsonl")
    costs = {}
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for stage in STAGES:
        here = [entry["value"] for entry in entries if entry["stage"] == stage]
        cpu, wall = (sum(value[key] for value in here) for key in ("cpu_seconds", "seconds"))
        costs[stage] = len(here), cpu, wall
    return costs


def task_cost(workers: int = 2, tasks: int = 500) -> float:
    """Seconds that dask and the list of what is finished cost for a task that does nothing."""
    from pointmend.cluster.dask_crew import DaskCrew, start_here
    from pointmend.cluster.work import Finished

    def nothing(work: str, number: int) -> dict[str, Any]:
        return {}

    with tempfile.TemporaryDirectory() as folder, start_here(workers, None) as client:
        noted = Finished(Path(folder) / "finished.jsonl")
        crew = DaskCrew(client)
        for _ in crew.do(nothing, "", range(workers)):
            pass
        began = time.monotonic()
        for outcome in crew.do(nothing, "", range(tasks)):
            noted.note("nothing", outcome.number, {})
        return (time.monotonic() - began) / tasks


def compare(sources: list[Path], folder: Path, steps: int, workers: int) -> None:
    common = ["--steps", str(steps), "--threads", "1"]
    one = run(sources, folder / "one", ["--together", *common])
    print(f"one process: {one['wall']:.0f} s, {one['cpu']:.0f} CPU s", flush=True)
    words = ["--cluster", f"local:{workers}", *common]
    many = run(sources, folder / "many", words, kill_after=5)
    print(f"{workers} workers, one of them killed: {many['wall']:.0f} s, {many['cpu']:.0f} CPU s")
    same = all(
        (folder / "one" / p.name).read_bytes() == (folder / "many" / p.name).read_bytes()
        for p in sources
    )
    print(f"outputs are {'equal byte by byte' if same else 'DIFFERENT'}")
    print(f"speed-up {one['wall'] / many['wall']:.2f}, CPU time {many['cpu'] / one['cpu']:.3f}\n")
    print("stage        tasks   CPU s one process   CPU s cluster   wall s of tasks, cluster")
    alone, shared = stage_costs(folder / "one"), stage_costs(folder / "many")
    for stage in STAGES:
        tasks, cpu, _ = alone[stage]
        print(
            f"{stage:<12} {tasks:<7} {cpu:<19.2f} {shared[stage][1]:<15.2f} {shared[stage][2]:.1f}"
        )
    again = time.monotonic()
    subprocess.run(denoise_command(sources, folder / "many", words), check=True)
    print(f"the same command again: {time.monotonic() - again:.1f} s")


def tiles(source: Path, folder: Path) -> None:
    """CPU seconds of the tiles of one field, for tiles of some sizes, and for more steps."""
    from pointmend.cluster.crew import AloneHere
    from pointmend.cluster.plan import Plan, look_at_parts
    from pointmend.cluster.run import Run
    from pointmend.denoising.options import SamplerOptions
    from pointmend.denoising.settings import Settings
    from pointmend.network.weights import weights_file
    from pointmend.scans.marks import Marks

    print("tile points  steps  tiles  CPU s   against the first  expected from the halo")
    first: tuple[float, float] | None = None
    for points, steps in ((150_000, 1), (40_000, 1), (10_000, 1), (150_000, 5)):
        out = folder / f"{points}-{steps}"
        out.mkdir()
        options = SamplerOptions(tile_points=points)
        parts = look_at_parts([(source, out / source.name)], Marks())
        plan = Plan(parts, Settings(steps=steps), options, Marks(), "default", "cpu", 1)
        weights = weights_file("default")
        Run(plan).carry_out(weights, lambda: nullcontext(AloneHere()), lambda standing: None)
        count, cpu, _ = stage_costs(out)["denoising"]
        size = parts[0].points / count
        share = region_points(parts[0].points, int(size)) / size
        first = first or (cpu, share)
        ratio, expected = cpu / first[0], share / first[1]
        print(
            f"{points:<12,} {steps:<6} {count:<6} {cpu:<7.1f} {ratio:<18.2f} {expected:.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=5_100_000)
    parser.add_argument("--files", type=int, default=6)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tiles", action="store_true")
    options = parser.parse_args()
    # Libraries of numerics start as many threads as there are cores, whoever asks.
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        sources = [folder / f"field{number}.laz" for number in range(options.files)]
        for number, source in enumerate(sources):
            make_field(source, number, -(-options.points // options.files))
        size = sum(source.stat().st_size for source in sources)
        if options.tiles:
            tiles(sources[0], folder)
            return
        print(f"{options.files} LAZ files, {size / 1e6:.0f} MB", flush=True)
        compare(sources, folder, options.steps, options.workers)
        print(f"dask: {1000 * task_cost():.1f} ms per task that does nothing")


if __name__ == "__main__":
    main()

"""
How fast is pointmend: against SBD, against the machine, and from a standing start?

    python -m benchmarks.inference DATA --points 10000 50000 --threads 1

DATA holds the PU-Net benchmark and SBD's published weights (peers/sbd.safetensors). For every size
one noisy input of the benchmark (2 %) is denoised by SBD's own 30-step sampler and by pointmend, in
this process and with the same number of threads, and once more by each in a process of its own for
its peak memory: SBD as published, which takes all patches of a cloud at once, and as it is timed
here, one patch after the other. Then: what share of the time matrix products alone would take at
the rate this machine reaches on them, and how long the command takes from its start to a written
file. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.peak_memory import AT_ONCE
from pointmend.cloud.files import write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.evaluation.metrics import point_to_mesh
from pointmend.evaluation.testsets import Case, open_benchmark
from pointmend.methods.method import Method, Task
from pointmend.methods.registry import contestant
from pointmend.network.dense import Dense

Floats = NDArray[np.float64]

LEVEL = 0.02
ROUNDS = 3


def wall(action: Callable[[], object], rounds: int) -> float:
    """Median seconds of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def peak_memory(name: str, options: argparse.Namespace, points: Floats) -> float:
    """Peak resident memory in MB of one method alone."""
    with tempfile.TemporaryDirectory() as folder:
        cloud = Path(folder) / "cloud.npy"
        np.save(cloud, points)
        words = [name, str(options.data), options.model, str(cloud), str(options.threads)]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.peak_memory", *words],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(options.threads)},
        )
    return float(done.stdout)


def matrix_rate() -> float:
    """Floating-point operations per second of the product that most of the time goes into."""
    rows, layer = torch.randn(4096 * torch.get_num_threads(), 64), Dense(64, 64)
    with torch.inference_mode():
        seconds = min(wall(lambda: layer(rows), 200) for _ in range(5))
    return 2.0 * rows.shape[0] * 64 * 64 / seconds


def products(method: Method, task: Task) -> float:
    """Floating-point operations in the matrix products of a run."""
    by_onednn = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    counted = {} if by_onednn is None else {by_onednn: _dense_flops}
    with FlopCounterMode(display=False, custom_mapping=counted) as counter:
        method(task)
    return float(counter.get_total_flops())


def _dense_flops(x: Sequence[int], weight: Sequence[int], *_: object, **__: object) -> int:
    """Floating-point operations of a product that FlopCounterMode does not know, by its shapes."""
    return 2 * math.prod(x) * weight[0]


def against_sbd(options: argparse.Namespace, case: Case) -> None:
    task = Task(case.noisy, level=case.level)
    ours = contestant("pointmend", model=options.model, steps=options.steps).method
    theirs = contestant("sbd", data=options.data).method
    results: dict[str, Floats] = {}

    def run(method: Method) -> Callable[[], None]:
        return lambda: results.update({method.name: method(task)})

    fast = wall(run(ours), ROUNDS)
    slow = wall(run(theirs), 1)
    fast = statistics.median([fast, wall(run(ours), ROUNDS)])  # before and after: load may change
    memory = [peak_memory(name, options, case.noisy) for name in ("pointmend", AT_ONCE, "sbd")]
    errors = [1e5 * point_to_mesh(results[m.name], case.mesh).total for m in (ours, theirs)]
    print(
        f"{case.points:<8,} {fast:<10.2f} {slow:<8.1f} {slow / fast:<7.1f} "
        f"{memory[0]:<8.0f} {memory[1]:<8.0f} {memory[0] / memory[1]:<7.2f} {memory[2]:<8.0f} "
        f"{errors[0]:<8.2f} {errors[1]:<8.2f} {case.points / fast:,.0f}",
        flush=True,
    )


def against_the_floor(options: argparse.Namespace, case: Case) -> None:
    task = Task(case.noisy, level=case.level)
    ours = contestant("pointmend", model=options.model, steps=options.steps).method
    taken = wall(lambda: ours(task), ROUNDS)
    rate, flops = matrix_rate(), products(ours, task)
    least = flops / rate
    print(
        f"{case.points:,} points: {flops / 1e9:.0f} GFLOP in matrix products take {least:.2f} s "
        f"at {rate / 1e9:.0f} GFLOP/s: {least / taken:.0%} of {taken:.2f} s"
    )


def cold_start(points: Floats) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "small.ply", Path(folder) / "out.ply"
        write(PointCloud(points[:2000]), source)
        command = [sys.executable, "-m", "pointmend"]
        denoise = [*command, "denoise", str(source), str(target), "--overwrite", "--quiet"]

        def start(words: list[str]) -> Callable[[], object]:
            return lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

        print(f"denoise 2,000 points from a cold start: {wall(start(denoise), 5):.2f} s")
        print(f"pointmend --help: {wall(start([*command, '--help']), 5):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--shape", default="elephant")
    parser.add_argument("--points", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--model", default="default")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    benchmark = open_benchmark(options.data, "PUNet")
    cases = [benchmark.case(options.shape, count, LEVEL) for count in options.points]

    print(f"{options.shape} with 2 % noise, {options.threads} thread(s)")
    print(
        "points   pointmend  SBD s    times   MB       SBD MB   share   by patch P2M      SBD's    "
        "points/s"
    )
    for case in cases:
        against_sbd(options, case)
    for case in cases:
        against_the_floor(options, case)
    cold_start(cases[0].noisy)


if __name__ == "__main__":
    main()

"""
SBD with its own sampler beside its published rows, and with ours beside the paper's.

Run: python -m benchmarks.sbd_check --data DATA [--shapes N] [--points 10000] [--level 0.01]
     python -m benchmarks.sbd_check --data DATA --calibrate
DATA holds peers/sbd.safetensors, punet/noisy, punet/clouds and punet/meshes/test. The second form
prints what turns the scores' length into the noise level of SBD (+our), from shapes we generate.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import torch

from pointmend.denoising.calibration import trimmed_rms
from pointmend.evaluation.metrics import chamfer, point_to_mesh
from pointmend.evaluation.noise import add_noise
from pointmend.geometry.meshes import poisson_disk, read_mesh, unit_sphere
from pointmend.geometry.procedural import SHAPES
from pointmend.methods.method import Method, Task
from pointmend.methods.sbd import SBD, AdaptiveSBD
from pointmend.methods.sbd_network import SBDNetwork, load_sbd

# CD x1e4 / P2M x1e5, mean of the 20 test shapes: SBD's own paper, and the paper's Table 4.
PUBLISHED = {
    "SBD": {
        (10_000, "0.01"): (2.52, 4.63),
        (10_000, "0.02"): (3.68, 10.7),
        (10_000, "0.03"): (4.71, 19.4),
        (50_000, "0.01"): (0.71, 1.50),
        (50_000, "0.02"): (1.29, 5.66),
        (50_000, "0.03"): (1.93, 10.4),
    },
    "SBD (+our)": {
        (10_000, "0.01"): (2.41, 3.95),
        (10_000, "0.02"): (3.61, 9.97),
        (50_000, "0.01"): (0.70, 1.41),
        (50_000, "0.02"): (1.20, 5.37),
    },
}

CALIBRATION_SHAPES = ("bumpy_sphere", "knot", "box", "gear")
CALIBRATION_POINTS = (10_000, 50_000)
CALIBRATION_LEVELS = (0.005, 0.01, 0.015, 0.02)  # what SBD was trained on


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--shapes", type=int, default=20)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--level", default="0.01")
    parser.add_argument("--calibrate", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    network = load_sbd(arguments.data / "peers" / "sbd.safetensors")
    if arguments.calibrate:
        calibrate(network)
    else:
        compare(network, arguments.data / "punet", arguments)


def compare(network: SBDNetwork, punet: Path, arguments: argparse.Namespace) -> None:
    methods: tuple[Method, ...] = (AdaptiveSBD(network), SBD(network))
    count, level = arguments.points, arguments.level
    noisy = np.load(punet / "noisy" / f"PUNet_{count}_poisson_{level}.npz")
    clean = np.load(punet / "clouds" / f"test_{count}_poisson.npz")
    names = sorted(noisy.files)[: arguments.shapes]
    for method in methods:
        rows, spent = [], 0.0
        for name in names:
            mesh = read_mesh(punet / "meshes" / "test" / f"{name}.off")
            truth = clean[name].astype(np.float64)
            task = Task(noisy[name].astype(np.float64), float(level))
            began = time.process_time()
            points = method(task)
            spent += time.process_time() - began
            rows.append((1e4 * chamfer(points, truth), 1e5 * point_to_mesh(points, mesh).total))
            print(f"{method.name:<11} {name:<16} CD {rows[-1][0]:6.3f}  P2M {rows[-1][1]:6.3f}")
            sys.stdout.flush()
        cd, p2m = np.mean(rows, axis=0)
        known = PUBLISHED[method.name].get((count, level))
        beside = "none" if known is None else f"CD {known[0]:.2f}  P2M {known[1]:.2f}"
        print(
            f"{method.name}: {len(rows)} shapes, {count} points, {level}: "
            f"CD {cd:.3f}  P2M {p2m:.3f}  (published, 20 shapes: {beside})  "
            f"CPU s {spent / len(rows):.1f}  peak memory {peak_memory():.2f} GB"
        )


def calibrate(network: SBDNetwork) -> None:
    method = AdaptiveSBD(network)
    ratios = []
    for name, count in product(CALIBRATION_SHAPES, CALIBRATION_POINTS):
        clean = poisson_disk(SHAPES[name](), count, np.random.default_rng(0))
        for level in CALIBRATION_LEVELS:
            noisy = add_noise(clean, "gaussian", level, np.random.default_rng(1))
            centre, radius = unit_sphere(noisy)
            reading = radius * trimmed_rms(method.first_scores((noisy - centre) / radius))
            ratios.append(float(np.std(noisy - clean)) / reading)
            print(f"{name:<13} {count} points, {level}: sigma / reading {ratios[-1]:.3f}")
            sys.stdout.flush()
    middle = float(np.median(ratios))
    least, most = middle / max(ratios), middle / min(ratios)
    print(f"median {middle:.2f}; sigma with it over the truth: {least:.2f} to {most:.2f}")


def peak_memory() -> float:
    """Largest resident memory of this process so far, in GB."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest * (1 if sys.platform == "darwin" else 1024) / 1e9


if __name__ == "__main__":
    main()

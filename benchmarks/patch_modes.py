"""
Independent against synchronised patches, and against patches as large as a local network allows.

Run: python -m benchmarks.patch_modes [--model NAME]
Shapes we generate, 10,000 points, three noise levels; ratios of CPU time within this run.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.options import SamplerOptions
from pointmend.evaluation.metrics import chamfer, point_to_mesh
from pointmend.evaluation.noise import add_noise
from pointmend.geometry.meshes import poisson_disk
from pointmend.geometry.procedural import SHAPES

MODES = {
    "independent, 1000 (the paper)": SamplerOptions(mode="independent", patch_points=1000),
    "synchronised, 1000": SamplerOptions(mode="synchronised", patch_points=1000),
    "synchronised, model's choice": SamplerOptions(mode="synchronised"),
}
NAMES = ("gear", "bumpy_sphere", "thin_plate", "knot")
LEVELS = (0.01, 0.02, 0.03)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="default")
    parser.add_argument("--points", type=int, default=10_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    denoiser = Denoiser.load(arguments.model, device="cpu")
    first = 0.0
    print(f"{'mode':<32} {'CD x1e4':>8} {'P2M x1e5':>9} {'CPU s':>7} {'ratio':>6}")
    for mode, options in MODES.items():
        rows, spent = [], 0.0
        for name in NAMES:
            mesh = SHAPES[name]()
            clean = poisson_disk(mesh, arguments.points, np.random.default_rng(0))
            for level in LEVELS:
                noisy = add_noise(clean, "gaussian", level, np.random.default_rng(1))
                began = time.process_time()
                points = replace(denoiser, options=options).denoise(noisy).points
                spent += time.process_time() - began
                rows.append((chamfer(points, clean), point_to_mesh(points, mesh).total))
        cd, p2m = np.mean(rows, axis=0)
        first = first or spent
        print(f"{mode:<32} {1e4 * cd:>8.3f} {1e5 * p2m:>9.3f} {spent:>7.1f} {first / spent:>5.1f}x")


if __name__ == "__main__":
    main()

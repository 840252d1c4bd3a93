"""
The PU-Net test set: CD and P2M of a model on the benchmark's own noisy inputs.

Run: python -m benchmarks.punet --data DATA --points 10000 --level 0.01 [--model NAME] [--steps L]
DATA holds punet/noisy, punet/clouds and punet/meshes/test. Report only: nothing is chosen by it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from pointmend.denoising.denoiser import Denoiser
from pointmend.evaluation.metrics import chamfer, point_to_mesh
from pointmend.geometry.meshes import read_mesh


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--level", default="0.01")
    parser.add_argument("--model", default="default")
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    denoiser = Denoiser.load(arguments.model, device="cpu")
    punet, count = arguments.data / "punet", arguments.points
    noisy = np.load(punet / "noisy" / f"PUNet_{count}_poisson_{arguments.level}.npz")
    clean = np.load(punet / "clouds" / f"test_{count}_poisson.npz")
    rows = []
    spent = 0.0
    for name in sorted(noisy.files):
        mesh = read_mesh(punet / "meshes" / "test" / f"{name}.off")
        truth = clean[name].astype(np.float64)
        began = time.process_time()
        result = denoiser.denoise(noisy[name], steps=arguments.steps)
        spent += time.process_time() - began
        surface = point_to_mesh(result.points, mesh)
        error = (noisy[name] - truth).std()
        rows.append(
            (1e4 * chamfer(result.points, truth), 1e5 * surface.total, result.sigma / error)
        )
        print(f"{name:<16} CD {rows[-1][0]:6.3f}  P2M {rows[-1][1]:6.3f}", flush=True)
    cd, p2m, ratio = np.mean(rows, axis=0)
    print(
        f"{len(rows)} shapes, {count} points, {arguments.level}, L = {arguments.steps}: "
        f"CD {cd:.3f}  P2M {p2m:.3f}  sigma/true {ratio:.3f}  CPU s {spent / len(rows):.1f}"
    )


if __name__ == "__main__":
    main()

"""
What turns the length of SBD's scores into the noise level of SBD (+our), on shapes we generate.

Run: python -m benchmarks.sbd_calibration --data DATA
DATA holds peers/sbd.safetensors. Its rows beside the published ones: pointmend reproduce table4.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path

import numpy as np
import torch

from pointmend.denoising.first_look import trimmed_rms
from pointmend.evaluation.noise import add_noise
from pointmend.geometry.meshes import poisson_disk, unit_sphere
from pointmend.geometry.procedural import SHAPES
from pointmend.methods.registry import sbd_weights
from pointmend.methods.sbd import AdaptiveSBD
from pointmend.methods.sbd_network import SBDNetwork, load_sbd

CALIBRATION_SHAPES = ("bumpy_sphere", "knot", "box", "gear")
CALIBRATION_POINTS = (10_000, 50_000)
CALIBRATION_LEVELS = (0.005, 0.01, 0.015, 0.02)  # what SBD was trained on


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    calibrate(load_sbd(sbd_weights(arguments.data)))


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


if __name__ == "__main__":
    main()

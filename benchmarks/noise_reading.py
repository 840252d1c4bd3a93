"""
How well is the noise of a cloud read, from its size and pattern?

    python -m benchmarks.noise_reading DATA --processes 2

DATA is the folder of `pointmend train`. Its validation shapes, or so many of them, are sampled at
several sizes and made noisy in several ways. Prints, as Markdown, the mean of |sigma / true - 1| in
percent, in brackets the mean of sigma / true - 1, where the truth is the deviation of the noise per
axis. Models are calibrated on the same shapes, among others, at 10,000 and 50,000 points and mostly
under Gaussian noise; 25,000 and 100,000 points are new to them.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch

from pointmend.denoising.denoiser import Denoiser
from pointmend.evaluation.noise import PATTERNS, Pattern
from pointmend.geometry.sample_cache import default_cache
from pointmend.training.library import open_library
from pointmend.training.processes import in_processes
from pointmend.training.validation import ValidationShape, validation_shapes

SIZES = (10_000, 25_000, 50_000, 100_000)
LEVELS = (0.005, 0.01, 0.02, 0.03)


def error(denoiser: Denoiser, cell: tuple[ValidationShape, Pattern, float]) -> float:
    """sigma / true - 1 of one cloud."""
    shape, pattern, level = cell
    noisy = shape.patterned(pattern, level)
    return denoiser.estimate_noise(noisy).sigma / float((noisy - shape.clean).std()) - 1.0


def main() -> None:
    """Read the noise of every cloud, size by size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="default")
    parser.add_argument("--points", type=int, nargs="+", default=SIZES)
    parser.add_argument("--patterns", nargs="+", choices=PATTERNS, default=PATTERNS)
    parser.add_argument("--every", type=int, default=3, help="take every so many-th shape")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=default_cache())
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sources = open_library(arguments.data, print).validation[:: arguments.every]
    denoiser = Denoiser.load(arguments.model, "cpu")
    print("| points | pattern | " + " | ".join(f"{level:.1%}" for level in LEVELS) + " |")
    print("|---" * (2 + len(LEVELS)) + "|", flush=True)
    for points in arguments.points:
        shapes = validation_shapes(sources, points, arguments.cache)
        cells = list(product(shapes, arguments.patterns, LEVELS))
        found = in_processes(partial(error, denoiser), cells, arguments.processes)
        size = (len(shapes), len(arguments.patterns), len(LEVELS))
        errors = 100.0 * np.array(list(found)).reshape(size).swapaxes(0, 1)
        for pattern, each in zip(arguments.patterns, errors):
            pairs = zip(np.abs(each).mean(axis=0), each.mean(axis=0))
            row = " | ".join(f"{off:.1f} ({mean:+.1f})" for off, mean in pairs)
            print(f"| {points:,} | {pattern} | {row} |", flush=True)


if __name__ == "__main__":
    main()

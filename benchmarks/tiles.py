"""
How far a point's result depends on what lies around it, and on how a cloud is cut into tiles.

    python -m benchmarks.tiles

A wavy surface of 40,000 points with noise of half a spacing, denoised in tiles of several sizes and
as a whole, prints the RMS and the largest difference from tiles of half its size, over the noise;
and, for a cloud cut in half, the RMS difference by distance from the cut, which says how wide the
surroundings of a tile must be.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.options import HALO
from pointmend.denoising.region import denoise_region
from pointmend.denoising.settings import Settings
from pointmend.denoising.survey import look_at_whole
from pointmend.evaluation.scenes import Plane

SPACING = 0.02
NOISE = 0.5 * SPACING
BANDS = range(0, 64, 8)

Floats = NDArray[np.float64]


def surface() -> Floats:
    rng = np.random.default_rng(0)
    points = Plane(100 * SPACING).sample(SPACING, rng)
    points[:, 2] = 0.3 * np.sin(2.0 * points[:, 0]) + NOISE * rng.standard_normal(len(points))
    return points + np.array([5e5, 5e6, 100.0])


def by_distance(denoiser: Denoiser, points: Floats, steps: int) -> list[float]:
    """RMS difference over the noise in bands of distance from a cut, in spacings."""
    survey = replace(look_at_whole(points), sigma={0: NOISE}, gain=1.0)
    settings = Settings(steps=steps)
    left = points[:, 0] < 5e5
    shifts = []
    for part in (points, points[left]):
        core = np.ones(len(part), dtype=bool)
        moved = denoise_region(denoiser.sampler, part, core, survey, settings, lambda state: None)
        shifts.append(moved.shift)
    error = np.linalg.norm(shifts[0][left] - shifts[1], axis=1) / NOISE
    distance = (5e5 - points[left, 0]) / SPACING
    bands = ((distance >= first) & (distance < first + 8) for first in BANDS)
    return [float(np.sqrt(np.mean(error[band] ** 2))) for band in bands]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="default")
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    points = surface()
    denoiser = Denoiser.load(options.model)
    print(f"surroundings of {HALO:g} local spacings, {options.steps} steps")
    reference: Floats | None = None
    for size in (20_000, 10_000, 5_000, 40_000):
        tiled = replace(denoiser, options=replace(denoiser.options, tile_points=size))
        found = tiled.denoise(points, steps=options.steps).points
        reference = found if reference is None else reference
        error = np.linalg.norm(found - reference, axis=1) / NOISE
        print(f"tiles of {size}: RMS {np.sqrt(np.mean(error**2)):.1e}, largest {error.max():.1e}")
    print("distance from a cut, in spacings, and RMS difference over the noise")
    for first, error in zip(BANDS, by_distance(denoiser, points, options.steps)):
        print(f"{first:>3} ... {first + 8:<3} {error:.1e}")


if __name__ == "__main__":
    main()

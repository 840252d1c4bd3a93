"""
Does denoising ever make a scan worse?

    python -m benchmarks.do_no_harm

Planes, spheres, boxes and thin plates, sampled evenly and as a spinning scanner sees them (rings,
range-dependent density, noise along the ray), with noise of 0 to 3 spacings. Prints, as Markdown,
the RMS distance to the true surface after denoising over that before (at noise 0: in spacings), and
what happens at edges and to the thickness of the plate. A spacing is the side of the square a point
has for itself.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from pointmend.denoising.denoiser import Denoiser
from pointmend.evaluation.scenes import BODIES, SAMPLINGS, Box, Scene, scene

RATIOS = (0.0, 0.1, 0.5, 1.0, 2.0, 3.0)
STRIP = 2.0

Floats = NDArray[np.float64]


def figure(what: Scene, noisy: Floats, denoised: Floats) -> str:
    """RMS after over RMS before, or in spacings where there was no noise."""
    before, after = what.rms(noisy), what.rms(denoised)
    return f"{after / before:.2f}" if before > 1e-9 else f"{after / what.spacing:.3f}"


def edge_strip(what: Scene, half: Floats, noisy: Floats, denoised: Floats) -> str:
    """RMS distance of the points near edges, before and after, in spacings."""
    near = np.sum(half - np.abs(what.clean) < STRIP * what.spacing, axis=1) >= 2
    before, after = (
        float(np.sqrt(np.mean(what.body.distance(points[near]) ** 2))) / what.spacing
        for points in (noisy, denoised)
    )
    return f"{before:.2f} -> {after:.2f}"


def thickness(what: Scene, half: Floats, denoised: Floats) -> str:
    """Median thickness of the plate away from its rim, over the true one."""
    inner = (half[:2] - np.abs(what.clean[:, :2]) > 4 * what.spacing).all(axis=1)
    faces = denoised[inner & (half[2] - np.abs(what.clean[:, 2]) < 1e-9)]
    top, bottom = faces[faces[:, 2] > 0.0, 2], faces[faces[:, 2] < 0.0, 2]
    return f"{(np.median(top) - np.median(bottom)) / (2 * half[2]):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="default")
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    denoiser = Denoiser.load(options.model)
    print("| scene | points |", " | ".join(f"noise {ratio:g}" for ratio in RATIOS), "|")
    print("|---|---|" + "---|" * len(RATIOS))
    extra: dict[str, list[str]] = {"near edges, even": [], "thickness of the plate": []}
    for sampling in SAMPLINGS:
        for name in BODIES:
            what = scene(name, sampling, np.random.default_rng(0))
            figures = []
            for ratio in RATIOS:
                noisy = what.noisy(ratio, np.random.default_rng(1))
                denoised = denoiser.denoise(noisy, steps=options.steps).points
                figures.append(figure(what, noisy, denoised))
                if sampling == "even" and isinstance(what.body, Box):
                    half = np.array(what.body.half)
                    if name == "edge":
                        found = edge_strip(what, half, noisy, denoised)
                        extra["near edges, even"].append(found)
                    else:
                        extra["thickness of the plate"].append(thickness(what, half, denoised))
            print(f"| {what.name} | {len(what.clean):,} |", " | ".join(figures), "|", flush=True)
    for name, cells in extra.items():
        print(f"| {name} | |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()

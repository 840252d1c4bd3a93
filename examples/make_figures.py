"""
Make the pictures of the documentation: `python examples/make_figures.py [FOLDER]`.

All of them from shapes made by formulas and the shipped weights; the numbers in them are measured
against the true surface. The picture of the viewer has a script of its own.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pointmend import Denoiser, read
from pointmend.cli.demo import write_demo
from pointmend.cli.inspect import draw
from pointmend.evaluation.example import EXAMPLE
from pointmend.evaluation.metrics import distances_to_surface
from pointmend.evaluation.noise import PATTERNS, add_noise
from pointmend.evaluation.sheets import Panel, contact_sheet, root_mean_square
from pointmend.geometry.meshes import Mesh, poisson_disk, sample_surface
from pointmend.geometry.neighbours import nearest
from pointmend.geometry.procedural import bumpy_sphere, gear, rounded_box
from pointmend.scans.budget import plan_file
from pointmend.scans.look import look_at

Floats = NDArray[np.float64]
DOCS = Path(__file__).resolve().parent.parent / "docs"
TO_SURFACE = "distance to the true surface"
# What is large on disk is slow to clone and to open.
COLOURS, LARGEST = 128, (860, 500)


def measured(points: Floats, surface: Mesh) -> Panel:
    """A cloud (N, 3) coloured by its distance to the surface."""
    distance = distances_to_surface(points, surface)
    return Panel(points, distance, f"RMS distance {root_mean_square(distance):.2g}")


def noisy_cloud(surface: Mesh, count: int, level: float) -> Floats:
    """Points (count, 3) of a surface with Gaussian noise."""
    rng = np.random.default_rng(0)
    return add_noise(poisson_disk(surface, count, rng), "gaussian", level, rng)


def demo(denoiser: Denoiser, target: Path) -> None:
    """The example in the box before and after, as `pointmend demo` draws it."""
    cloud = read(EXAMPLE)
    write_demo(cloud, denoiser.denoise(cloud.positions).points, target.parent)
    (target.parent / "noisy.ply").unlink()
    (target.parent / "denoised.ply").unlink()


def roughness(denoiser: Denoiser, target: Path) -> None:
    """The example as `pointmend inspect --picture` draws it."""
    draw(look_at(denoiser, EXAMPLE, plan_file(EXAMPLE, None)), target, "example.ply")


def strengths(denoiser: Denoiser, target: Path) -> None:
    """A gear cleaned not at all, half of the way, and all of it."""
    surface = gear()
    noisy = noisy_cloud(surface, 6000, 0.015)
    chosen = (0.0, 0.5, 1.0)
    row = [measured(denoiser.denoise(noisy, strength=s).points, surface) for s in chosen]
    titles = [f"strength {s:g}" for s in chosen]
    contact_sheet([row], titles, target, label=TO_SURFACE, panel=(330, 270))


def steps(denoiser: Denoiser, target: Path) -> None:
    """A cloud after every step of the sampler."""
    surface = bumpy_sphere()
    noisy = noisy_cloud(surface, 6000, 0.03)
    seen = [noisy]
    denoiser.denoise(
        noisy,
        steps=3,
        progress=lambda state: None if state.positions is None else seen.append(state.positions),
    )
    titles = ["noisy", *(f"step {number}" for number in range(1, len(seen)))]
    row = [measured(points, surface) for points in seen]
    contact_sheet([row], titles, target, label=TO_SURFACE, panel=(260, 240))


def spread(denoiser: Denoiser, target: Path) -> None:
    """Randomly sampled points, cleaned without and with spreading, coloured by their gaps."""
    surface = rounded_box()
    rng = np.random.default_rng(0)
    clean, _ = sample_surface(surface, 5000, rng)
    noisy = add_noise(clean, "gaussian", 0.01, rng)
    row = []
    for evenly in (False, True):
        points = denoiser.denoise(noisy, spread=evenly).points
        gaps = np.linalg.norm(points[nearest(points, points, 2)[:, 1]] - points, axis=1)
        row.append(Panel(points, gaps, f"gaps vary by {gaps.std() / gaps.mean():.0%}"))
    label = "distance to the nearest neighbour"
    contact_sheet([row], ["as it is", "--spread"], target, label=label, panel=(330, 300))


def patterns(denoiser: Denoiser, target: Path) -> None:
    """The six noise patterns at the same scale."""
    surface = rounded_box()
    clean = poisson_disk(surface, 4000, np.random.default_rng(0))
    panels = [
        measured(add_noise(clean, pattern, 0.03, np.random.default_rng(1)), surface)
        for pattern in PATTERNS
    ]
    contact_sheet([panels], PATTERNS, target, label=TO_SURFACE, panel=(200, 180))


FIGURES = {
    "before-after.png": demo,
    "figures/roughness.png": roughness,
    "figures/strengths.png": strengths,
    "figures/steps.png": steps,
    "figures/spread.png": spread,
    "figures/patterns.png": patterns,
}


def main(folder: Path) -> None:
    """Draw all figures, and make them small."""
    denoiser = Denoiser.load("default")
    for name, make in FIGURES.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        make(denoiser, target)
        with Image.open(target) as drawn:
            small = drawn.convert("RGB")
        small.thumbnail(LARGEST, Image.Resampling.LANCZOS)
        small.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(target, optimize=True)
        print(f"{target}: {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)

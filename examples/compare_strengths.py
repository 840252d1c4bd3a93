"""Draw one cloud cleaned with several strengths: `python examples/compare_strengths.py OUT.png`."""

import sys
from pathlib import Path

import numpy as np

from pointmend import Denoiser
from pointmend.evaluation.noise import add_noise
from pointmend.evaluation.sheets import Panel, contact_sheet, root_mean_square
from pointmend.geometry.meshes import poisson_disk
from pointmend.geometry.procedural import gear
from pointmend.geometry.triangles import points_to_mesh

STRENGTHS = (0.0, 0.5, 1.0)


def main(target: Path) -> None:
    """Clean a gear, whose edges are sharp, half of the way and all of it."""
    surface = gear()
    rng = np.random.default_rng(0)
    noisy = add_noise(poisson_disk(surface, 6000, rng), "gaussian", 0.015, rng)
    denoiser = Denoiser.load("default")  # the model is loaded once for all runs
    panels = []
    for strength in STRENGTHS:
        points = denoiser.denoise(noisy, strength=strength).points
        distance = np.sqrt(points_to_mesh(points, surface).squared)
        caption = f"RMS distance {root_mean_square(distance):.2g}"
        panels.append(Panel(points, distance, caption))
        print(f"strength {strength}: {caption}")
    titles = [f"strength {strength:g}" for strength in STRENGTHS]
    contact_sheet([panels], titles, target, label="distance to the true surface", panel=(330, 270))
    print(f"written: {target}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "strengths.png"))

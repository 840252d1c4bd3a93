"""Command line: `pointmend demo`, the noisy example in the box denoised and measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from .model import Flag, ModelChoice
from .paths import make_folder
from .progress import progress_bar
from .report import noise, number, print_json, print_table, seconds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pointmend.cloud.point_cloud import PointCloud

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Demo:
    """Denoise a noisy example in the box and measure it against the true surface."""

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("demo-output")
    """Folder for the noisy cloud, the denoised cloud and the picture."""
    choice: Annotated[ModelChoice, tyro.conf.arg(name="")] = field(default_factory=ModelChoice)
    json: Flag = False
    """Print the result as one JSON object."""

    def run(self) -> None:
        """Denoise the example, measure, draw, and print."""
        from pointmend.cloud.files import read
        from pointmend.evaluation.example import EXAMPLE, NOISE

        make_folder(self.out)
        cloud = read(EXAMPLE)
        with progress_bar(quiet=False) as tell:
            denoiser = self.choice.load()
            start = perf_counter()
            result = denoiser.denoise(cloud.positions, progress=tell)
            took = perf_counter() - start
        before, after = write_demo(cloud, result.points, self.out)
        facts = {
            "points": len(cloud),
            "sigma": result.sigma,
            "true_sigma": NOISE,
            "spacing": result.spacing,
            "rms_before": before,
            "rms_after": after,
            "improvement": before / after,
            "seconds": took,
            "out": str(self.out),
        }
        if self.json:
            print_json(facts)
        else:
            print_table(_summary(facts, self.out))


def write_demo(cloud: PointCloud, denoised: Floats, folder: Path) -> tuple[float, float]:
    """
    Write both clouds and the picture, and measure against the true surface.

    Parameters
    ----------
    cloud : the noisy example, N points.
    denoised : (N, 3) where they were moved to.

    Returns
    -------
    Root mean square of the distance to the surface before and after.
    """
    import numpy as np

    from pointmend.cloud.files import write
    from pointmend.evaluation.example import true_surface
    from pointmend.evaluation.sheets import before_after_picture
    from pointmend.geometry.triangles import points_to_mesh

    surface = true_surface()
    before = np.sqrt(points_to_mesh(cloud.positions, surface).squared)
    after = np.sqrt(points_to_mesh(denoised, surface).squared)
    write(cloud, folder / "noisy.ply")
    write(cloud.with_positions(denoised), folder / "denoised.ply")
    before_after_picture(cloud.positions, denoised, before, after, folder / "before-after.png")
    return float(np.sqrt(np.mean(before**2))), float(np.sqrt(np.mean(after**2)))


def _summary(facts: dict[str, Any], folder: Path) -> dict[str, str]:
    improvement = facts["improvement"]
    change = f"{improvement:.2f} x closer" if improvement >= 1.0 else "farther than before"
    return {
        "points": f"{facts['points']:,}",
        "noise": f"{noise(facts['sigma'], facts['spacing'])}, estimated",
        "true noise": number(facts["true_sigma"]),
        "RMS distance to the surface": f"{number(facts['rms_before'])} before, "
        f"{number(facts['rms_after'])} after: {change}",
        "time": f"{seconds(facts['seconds'])} ({facts['points'] / facts['seconds']:,.0f} points/s)",
        "written": f"{folder / 'noisy.ply'}, {folder / 'denoised.ply'}",
        "picture": str(folder / "before-after.png"),
    }

"""Write a denoiser of your own, measure it beside ours: `python examples/custom_denoiser.py`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.evaluation.contract import Promise, check_denoiser
from pointmend.evaluation.metrics import distances_to_surface, surface_error
from pointmend.evaluation.noise import add_noise
from pointmend.geometry.meshes import poisson_disk
from pointmend.geometry.procedural import bumpy_sphere
from pointmend.methods.method import Method, Task
from pointmend.methods.registry import contestants


@dataclass(frozen=True)
class NeighbourMean:
    """Every point goes to the mean of its k nearest: simple, and it shrinks what is round."""

    k: int = 12
    name: str = "neighbour mean"
    keeps_order: bool = True

    def __call__(self, task: Task) -> NDArray[np.float64]:
        """Smoothed points (N, 3)."""
        points = task.points
        if len(points) == 0:
            return points.copy()
        near = cKDTree(points).query(points, k=min(self.k, len(points)))[1]
        mean: NDArray[np.float64] = points[near.reshape(len(points), -1)].mean(axis=1)
        return mean


def main() -> None:
    """Check the promises every denoiser makes, then compare on one noisy cloud."""
    mine = NeighbourMean()
    # It moves clean clouds as well, and says so: by up to half a spacing.
    check_denoiser(lambda points: mine(Task(points)), Promise(clean=0.5))
    print("promises kept: count, order, motions, scale, hard clouds")

    surface = bumpy_sphere()
    rng = np.random.default_rng(0)
    noisy = add_noise(poisson_disk(surface, 3000, rng), "gaussian", 0.02, rng)
    others = [peer.method for peer in contestants(["identity", "jet", "pointmend"])]
    methods: list[Method] = [*others, mine]
    for method in methods:
        error = surface_error(distances_to_surface(method(Task(noisy, level=0.02)), surface))
        print(f"{method.name:<15} {error.rms:.4f} from the true surface (RMS)")


if __name__ == "__main__":
    main()

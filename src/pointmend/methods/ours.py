"""Methods: pointmend itself as one of the methods."""

from __future__ import annotations

from dataclasses import dataclass

from pointmend.denoising.denoiser import Denoiser

from .method import Float64, Task


@dataclass(frozen=True)
class Ours:
    """
    Our denoiser with some weights and settings; it never looks at the known noise level.

    Attributes
    ----------
    steps, eta : L and eta of the sampler.
    spread : let points slide along the surface, too.
    """

    denoiser: Denoiser
    steps: int = 5
    eta: float = 0.0
    spread: bool = False
    name: str = "pointmend"
    keeps_order: bool = True

    def __call__(self, task: Task) -> Float64:
        """Denoised points (N, 3)."""
        return self.denoiser.denoise(
            task.points, steps=self.steps, eta=self.eta, spread=self.spread
        ).points

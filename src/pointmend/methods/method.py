"""Methods: what every method is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.meshes import Mesh

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """
    A noisy cloud to be denoised, and what may be known about it.

    Attributes
    ----------
    points : (N, 3) float64, in any units and with any offset. Not to be changed.
    level : standard deviation of the noise as a share of the cloud's radius (0.01 for "1 %"), when
        it is known. Some methods were published with settings for each level; ours never looks.
    surface : the true surface in the same frame, for the oracle alone.
    """

    points: Float64
    level: float | None = None
    surface: Mesh | None = None


class Method(Protocol):
    """
    A denoiser.

    Attributes
    ----------
    name : what tables call it.
    keeps_order : whether row i of the result is row i of the input, moved. Where it is not, the
        result may have been spread evenly, which helps its CD.
    """

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def keeps_order(self) -> bool:
        """Whether row i of the result is row i of the input, moved."""

    def __call__(self, task: Task) -> Float64:
        """Denoise: (N, 3) -> (N, 3), deterministic, finite for finite input."""


@dataclass(frozen=True)
class Contestant:
    """
    A method with the line that tells it apart from any other setting of itself.

    Attributes
    ----------
    method : what runs.
    signature : everything its results depend on: settings, and a hash of its weights.
    """

    method: Method
    signature: str

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.method.name

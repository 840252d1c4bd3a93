"""Denoising: what neighbours have been moved by together is shape; a share of it is owed back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointmend.geometry.ways import way_of_others

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

# Up to this noise, in the network's frame, all that is asked for is given back; in wider noise,
# which leaves more of itself in a mean, less, as one over its square. Chosen on validation shapes
# with 10,000 and 50,000 points (training/LOG.md).
FULL_UP_TO = 0.02


def share_in(sigma: float, most: float) -> float:
    """The share that is given back in noise of sigma, of at most so much."""
    return most * min(1.0, (FULL_UP_TO / sigma) ** 2) if sigma > 0.0 else most


@dataclass(frozen=True)
class Amends:
    """
    What points are owed back of the way they have been moved.

    Noise moves neighbours every way, so that the mean of what takes it away is next to nothing.
    Where neighbours have been moved together, a tip or an edge was taken for noise.

    Attributes
    ----------
    way : (N, 3) from where points are now back to where they began.
    share : of what neighbours have in common that is given back, 0 to 1.
    """

    way: Float64
    share: float

    def of(self, rows: Int64) -> Amends:
        """The same of some points (n,)."""
        return Amends(self.way[rows], self.share)

    def around(self, neighbours: Tensor) -> Float64:
        """
        What some points are owed, (Q, 3): a share of the mean of their neighbours' ways.

        Parameters
        ----------
        neighbours : (Q, K) rows of the points around each, K >= 2, itself first, which does not
            count: what it was moved by alone is noise.
        """
        mean = way_of_others(torch.from_numpy(self.way), neighbours.cpu()).numpy()
        owed: Float64 = self.share * mean
        return owed

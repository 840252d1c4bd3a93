"""Denoising: what neighbours have been moved by together is shape; a share of it is owed back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointmend.geometry.planes import neighbourhood_sum

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


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
        others = neighbours[:, 1:].cpu().contiguous()
        total = neighbourhood_sum(torch.from_numpy(self.way), others).numpy()
        owed: Float64 = self.share / others.shape[1] * total
        return owed

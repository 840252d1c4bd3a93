"""Denoising: what became of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Moved:
    """
    What became of the P points of a region; rows that are not core mean nothing.

    Attributes
    ----------
    shift : (P, 3) in input units.
    shares : (P,) the share of its way each point was allowed.
    sigma : (P,) noise level each was treated with, in input units.
    outlier : (P,) who was left out as an outlier.
    times : what the sampler visited at the level of most points.
    """

    shift: Float64
    shares: Float64
    sigma: Float64
    outlier: Bools
    times: tuple[float, ...]

    @classmethod
    def nothing(cls, count: int) -> Moved:
        """Points none of which has moved yet."""
        zeros = np.zeros(count)
        return cls(np.zeros((count, 3)), zeros, zeros.copy(), zeros.astype(bool), (0.0,))

    def rows(self, index: Int64 | Bools) -> Moved:
        """What became of some of the points."""
        return Moved(
            self.shift[index],
            self.shares[index],
            self.sigma[index],
            self.outlier[index],
            self.times,
        )

    def put(self, index: Int64, part: Moved) -> None:
        """Take over what became of the points `index` (n,)."""
        self.shift[index], self.shares[index] = part.shift, part.shares
        self.sigma[index], self.outlier[index] = part.sigma, part.outlier

"""Room `scans`: what became of a cloud, counted up."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.ordering import valid_rows

Float64 = NDArray[np.float64]


@dataclass
class Tally:
    """
    What became of a cloud, counted up piece by piece; lengths in the units of the file.

    Attributes
    ----------
    points, invalid, outliers : how many there are, are not finite, were flagged.
    held_back : points whose way was cut short because there was nothing to gain.
    moved : points that are not where they were.
    moved_sum, moved_largest : of the displacements.
    sigma, spacing : noise level and spacing.
    in_trained_range : whether the network has learned on such noise and spacing.
    schedule : times visited.
    lost : what the output's format cannot hold.
    """

    points: int = 0
    invalid: int = 0
    outliers: int = 0
    held_back: int = 0
    moved: int = 0
    moved_sum: float = 0.0
    moved_largest: float = 0.0
    sigma: float = 0.0
    spacing: float = 0.0
    in_trained_range: bool = False
    schedule: tuple[float, ...] = (0.0,)
    lost: tuple[str, ...] = field(default_factory=tuple)

    def add(
        self, positions: Float64, shift: Float64, shares: Float64, outlier: NDArray[np.bool_]
    ) -> None:
        """Count some points: (n, 3), (n, 3), (n,), (n,)."""
        valid = valid_rows(positions)
        way = np.linalg.norm(shift, axis=1)
        self.points += len(positions)
        self.invalid += int(np.sum(~valid))
        self.outliers += int(outlier.sum())
        self.held_back += int(np.sum(valid & ~outlier & (shares < 1.0)))
        self.moved += int(np.sum(way > 0.0))
        self.moved_sum += float(way.sum())
        self.moved_largest = max(self.moved_largest, float(way.max(initial=0.0)))

    @property
    def moved_mean(self) -> float:
        """Mean displacement of the finite points."""
        finite = self.points - self.invalid
        return self.moved_sum / finite if finite else 0.0

    @property
    def nothing_to_gain(self) -> bool:
        """Whether the cloud was so clean that no point was moved."""
        return self.moved == 0

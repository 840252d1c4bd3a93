"""Denoising: what a network says of a noisy cloud before anything moves, and its noise by that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Rows = NDArray[np.bool_] | NDArray[np.int64] | slice


@dataclass(frozen=True)
class FirstLook:
    """
    What a network says of a noisy cloud; lengths in its frame.

    Attributes
    ----------
    scores : (N, 3)
    readings : (N, 2) what every point thinks of the noise (`NoiseReading`); (N, 0) from a network
        that does not read it.
    """

    scores: Float64
    readings: Float64

    @classmethod
    def together(cls, looks: Sequence[FirstLook]) -> FirstLook:
        """All points of several looks, one after the other."""
        return cls(
            np.concatenate([look.scores for look in looks]),
            np.concatenate([look.readings for look in looks]),
        )

    def rows(self, rows: Rows) -> FirstLook:
        """What is said of some points."""
        return FirstLook(self.scores[rows], self.readings[rows])

    @property
    def reads_noise(self) -> bool:
        """Whether points say what they think of the noise."""
        return bool(self.readings.shape[1])

    def noise(self) -> float:
        """The noise that all points agree on best: the surer one is, the more its word counts."""
        level, error = self.readings.T
        return float(np.exp(np.average(level, weights=np.exp(-error))))

"""Denoising: what a network says and sees of a noisy cloud before anything moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Rows = NDArray[np.bool_] | NDArray[np.int64] | slice


# Share of the longest scores left out of the reading: a few outliers must not pass for noise.
TRIMMED = 0.02


@dataclass(frozen=True)
class FirstLook:
    """
    What a network says and sees of a noisy cloud; lengths in its frame.

    Attributes
    ----------
    scores : (N, 3)
    spreads : (N, S) how far the points around each lie from its planes, at all scales; (N, 0) from
        a network that looks at no planes.
    tails : (N, T) how heavy the tails of these distances are (`tails_of`); (N, 0) likewise.
    """

    scores: Float64
    spreads: Float64
    tails: Float64

    @classmethod
    def together(cls, looks: Sequence[FirstLook]) -> FirstLook:
        """All points of several looks, one after the other."""
        return cls(
            np.concatenate([look.scores for look in looks]),
            np.concatenate([look.spreads for look in looks]),
            np.concatenate([look.tails for look in looks]),
        )

    def rows(self, rows: Rows) -> FirstLook:
        """What is said of some points."""
        return FirstLook(self.scores[rows], self.spreads[rows], self.tails[rows])


def trimmed(scores: Float64) -> Float64:
    """Squared lengths of scores (N, 3), the longest two percent left out: (n,)."""
    squared = np.sort(np.sum(scores**2, axis=1))
    return squared[: max(1, int((1.0 - TRIMMED) * len(squared)))]


def trimmed_rms(scores: Float64) -> float:
    """RMS length of scores (N, 3), the longest left out: what the table is read by."""
    return float(np.sqrt(trimmed(scores).mean()))

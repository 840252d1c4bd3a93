"""Denoising: from what the scores say to the noise level, by a table beside the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointmend.errors import InputError

Float64 = NDArray[np.float64]


# Share of the longest scores left out of the reading: a few outliers must not pass for noise.
TRIMMED = 0.02


def trimmed_rms(scores: Float64) -> float:
    """
    RMS length of the scores, the longest two percent left out: what the table is read by.

    Parameters
    ----------
    scores : (N, 3).
    """
    squared = np.sort(np.sum(scores**2, axis=1))
    return float(np.sqrt(squared[: max(1, int((1.0 - TRIMMED) * len(squared)))].mean()))


@dataclass(frozen=True)
class Calibration:
    """
    A monotone map from (trimmed RMS of the scores, spacing) to sigma, in units of spacing.

    A score points to the surface, so its length is the normal part of the noise, shortened by
    what the network is unsure of; how much depends on how the noise compares with the spacing.

    Attributes
    ----------
    reading : increasing values of rms / spacing.
    level : sigma / spacing at each, increasing.
    """

    reading: tuple[float, ...]
    level: tuple[float, ...]

    def __post_init__(self) -> None:
        increasing = all(np.diff(column).min(initial=1.0) > 0 for column in self.columns)
        if len(self.reading) != len(self.level) or len(self.reading) < 1 or not increasing:
            raise InputError("a calibration needs two increasing columns of the same length")

    @property
    def columns(self) -> tuple[Float64, Float64]:
        """Both columns, with the origin in front."""
        return np.array([0.0, *self.reading]), np.array([0.0, *self.level])

    def sigma(self, rms: float, spacing: float) -> float:
        """
        The noise level for an RMS score length at a spacing, all in one unit.

        Straight lines between the entries, from the origin below the first, along the last
        slope's ratio above the last.
        """
        if spacing <= 0.0:
            return rms
        reading, level = self.columns
        ratio = rms / spacing
        if ratio > reading[-1]:
            return float(rms * level[-1] / reading[-1])
        return float(spacing * np.interp(ratio, reading, level))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"reading": list(self.reading), "level": list(self.level)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Build from plain values."""
        return cls(tuple(values["reading"]), tuple(values["level"]))


def fit_calibration(
    readings: Sequence[float], levels: Sequence[float], knots: int = 12
) -> Calibration:
    """
    Fit the table to measured pairs (rms / spacing, sigma / spacing).

    Pairs are sorted by reading, averaged in `knots` groups of equal size, and made increasing
    (pool adjacent violators by running maxima: groups are averages already).
    """
    order = np.argsort(readings)
    reading = np.array(readings, dtype=np.float64)[order]
    level = np.array(levels, dtype=np.float64)[order]
    groups = np.array_split(np.arange(len(reading)), min(knots, len(reading)))
    points = [(float(reading[g].mean()), float(level[g].mean())) for g in groups]
    kept: list[tuple[float, float]] = []
    for point in points:
        if not kept or (point[0] > kept[-1][0] and point[1] > kept[-1][1]):
            kept.append(point)
    return Calibration(tuple(p[0] for p in kept), tuple(p[1] for p in kept))

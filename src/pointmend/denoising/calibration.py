"""Denoising: from what the scores say to the noise level, by a table beside the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointmend.errors import InputError

from .noise_fit import NoiseFit

Float64 = NDArray[np.float64]


# A calibration has so many curves at most, each through so many averages of at least so many
# readings; a band of spacings needs so many, and takes in a tenth of its neighbours' bands.
MOST_CURVES = 3
KNOTS = 10
LEAST_AVERAGED = 3
LEAST_READINGS = 20
BAND_OVERLAP = 1.1


@dataclass(frozen=True)
class Curve:
    """
    A monotone map from the trimmed RMS of the scores to sigma, in units of spacing.

    A score points to the surface, so its length is the normal part of the noise, shortened by
    what the network is unsure of; how much depends on how the noise compares with the spacing.

    Attributes
    ----------
    spacing : the spacing in the network's frame around which it was measured.
    reading : increasing values of rms / spacing.
    level : sigma / spacing at each, increasing.
    """

    spacing: float
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

    def at(self, ratio: float) -> float:
        """
        Sigma / spacing for rms / spacing.

        Straight lines between the entries, from the origin below the first, along the last
        slope's ratio above the last.
        """
        reading, level = self.columns
        if ratio > reading[-1]:
            return float(ratio * level[-1] / reading[-1])
        return float(np.interp(ratio, reading, level))


@dataclass(frozen=True)
class Calibration:
    """
    From (trimmed RMS of the scores, spacing) to sigma: curves measured at a few spacings.

    Attributes
    ----------
    curves : ordered by their spacing; in between, what they say is interpolated.
    fit : the same by all that a first look shows, for noise that neighbourhoods show; None where it
        was not measured.
    """

    curves: tuple[Curve, ...]
    fit: NoiseFit | None = None

    def __post_init__(self) -> None:
        spacings = [curve.spacing for curve in self.curves]
        if not spacings or min(spacings) <= 0.0 or np.diff(spacings).min(initial=1.0) <= 0.0:
            raise InputError("a calibration needs curves of increasing spacing, one at least")

    def sigma(self, rms: float, spacing: float) -> float:
        """The noise level for an RMS score length at a spacing, all in the network's frame."""
        if spacing <= 0.0:
            return rms
        places = np.log([curve.spacing for curve in self.curves])
        levels = [curve.at(rms / spacing) for curve in self.curves]
        return float(spacing * np.interp(np.log(spacing), places, levels))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Build from plain values."""
        try:
            curves = [
                Curve(curve["spacing"], tuple(curve["reading"]), tuple(curve["level"]))
                for curve in values["curves"]
            ]
        except KeyError as missing:
            raise InputError(
                f"the model's noise calibration has no {missing}; make the model again from its "
                "checkpoint with `pointmend release`"
            ) from missing
        fit = values.get("fit")
        return cls(tuple(curves), None if fit is None else NoiseFit.from_dict(fit))


def fit_calibration(rms: ArrayLike, spacing: ArrayLike, sigma: ArrayLike) -> Calibration:
    """
    Fit curves to readings at known noise, for as many bands of spacing as they allow.

    Parameters
    ----------
    rms, spacing, sigma : (M,) each, in the network's frame.
    """
    gaps = np.asarray(spacing, dtype=np.float64)
    reading, level = np.asarray(rms) / gaps, np.asarray(sigma) / gaps
    bands = int(np.clip(len(gaps) // LEAST_READINGS, 1, MOST_CURVES))
    edges = np.quantile(gaps, np.linspace(0.0, 1.0, bands + 1))
    curves: list[Curve] = []
    for least, most in pairwise(edges.tolist()):
        inside = (gaps >= least / BAND_OVERLAP) & (gaps <= most * BAND_OVERLAP)
        middle = float(np.median(gaps[(gaps >= least) & (gaps <= most)]))
        if not curves or middle > curves[-1].spacing:
            curves.append(_fit_curve(middle, reading[inside], level[inside]))
    return Calibration(tuple(curves))


def _fit_curve(spacing: float, reading: Float64, level: Float64) -> Curve:
    """
    One curve through readings (m,) at known levels (m,).

    They are averaged in groups of like level, not of like reading: where wide noise hardly changes
    the reading any more, groups of like reading would all have the same middling level. Groups
    that do not increase both are left out.
    """
    groups = np.array_split(np.argsort(level), np.clip(len(level) // LEAST_AVERAGED, 1, KNOTS))
    kept: list[tuple[float, float]] = []
    for group in groups:
        point = float(reading[group].mean()), float(level[group].mean())
        if not kept or (point[0] > kept[-1][0] and point[1] > kept[-1][1]):
            kept.append(point)
    return Curve(spacing, tuple(p[0] for p in kept), tuple(p[1] for p in kept))

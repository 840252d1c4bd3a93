"""Denoising: from scores and the layer that wide noise makes to its level, by a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointmend.errors import InputError

Float64 = NDArray[np.float64]

# Least absolute deviations, by weighing each reading by one over how far it is off (at least so
# far, relative) again and again: a few odd shapes must not bend the fit. So few readings as tests
# or a user's own shapes give leave terms undecided; the ridge sets those to zero.
ROUNDS = 20
LEAST_ERROR = 0.01
RIDGE = 1e-2


@dataclass(frozen=True)
class WideCalibration:
    """
    From (trimmed RMS of the scores, thickness of the layer, spacing) to wide noise.

    Scores grow short where noise is wide, the more so the flatter a shape is; its layer looks
    thicker, the more so the more a shape is bent. So sigma is near their geometric mean, times
    exp(q): q is a quadratic of log(rms / spacing), log(layer / spacing) and log(spacing), each as
    -1 to 1 between the least and the greatest it was fitted to, and held there beyond.

    Attributes
    ----------
    least, greatest : (3,) the range of the three logarithms.
    factors : (10,) of 1, the three, and their products.
    """

    least: tuple[float, ...]
    greatest: tuple[float, ...]
    factors: tuple[float, ...]

    def sigma(self, rms: float, layer: float, spacing: float) -> float:
        """The noise level, all lengths in the network's frame and above zero."""
        place = _logarithms(rms, layer, spacing)
        terms = _terms(place, np.array(self.least), np.array(self.greatest))
        return float(np.sqrt(rms * layer) * np.exp(terms @ np.array(self.factors)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> WideCalibration:
        """Build from plain values."""
        try:
            return cls(*(tuple(values[key]) for key in ("least", "greatest", "factors")))
        except KeyError as missing:
            raise InputError(
                f"the model's calibration of wide noise has no {missing}; make the model again "
                "from its checkpoint with `pointmend release`"
            ) from missing


def fit_wide_calibration(
    rms: ArrayLike, layer: ArrayLike, spacing: ArrayLike, sigma: ArrayLike
) -> WideCalibration:
    """
    Fit readings at known noise.

    Parameters
    ----------
    rms, layer, spacing, sigma : (M,) each, in the network's frame, M >= 1.
    """
    logarithms = _logarithms(rms, layer, spacing)
    least, greatest = logarithms.min(axis=0), logarithms.max(axis=0)
    terms = _terms(logarithms, least, greatest)
    missing = np.log(sigma) - 0.5 * (np.log(rms) + np.log(layer))
    ridge = np.diag([0.0, *[RIDGE] * (terms.shape[1] - 1)])
    weight = np.ones(len(missing))
    for _ in range(ROUNDS):
        weighed = terms * weight[:, None]
        factors = np.linalg.solve(weighed.T @ terms + ridge, weighed.T @ missing)
        weight = 1.0 / np.maximum(np.abs(terms @ factors - missing), LEAST_ERROR)
    return WideCalibration(*(tuple(each.tolist()) for each in (least, greatest, factors)))


def _logarithms(rms: ArrayLike, layer: ArrayLike, spacing: ArrayLike) -> Float64:
    """What the noise is read by: (M, 3) from (M,) each, or (3,) from numbers."""
    gap = np.log(spacing)
    return np.stack([np.log(rms) - gap, np.log(layer) - gap, gap], axis=-1)


def _terms(logarithms: Float64, least: Float64, greatest: Float64) -> Float64:
    """The terms (..., 10) of the quadratic of three logarithms (..., 3)."""
    half = np.maximum((greatest - least) / 2.0, 1e-9)
    place = np.clip((logarithms - (least + greatest) / 2.0) / half, -1.0, 1.0)
    pairs = combinations_with_replacement(np.moveaxis(place, -1, 0), 2)
    products = np.stack([a * b for a, b in pairs], axis=-1)
    return np.concatenate([np.ones_like(place[..., :1]), place, products], axis=-1)

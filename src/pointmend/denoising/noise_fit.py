"""Denoising: from all that a first look shows to the noise level, by a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointmend.errors import InputError

from .first_look import FirstLook, trimmed

Float64 = NDArray[np.float64]

# From how many spacings on noise is read by the fit. Below, neighbourhoods show the arrangement of
# the points rather than noise; scores do not mind it.
FITTED_FROM = 0.4

# A length below so many spacings counts as that: its logarithm would say more than it means.
LEAST_LENGTH = 1e-3

# Least absolute deviations, by weighing each reading by one over how far it is off (at least so
# far, relative) again and again: a few odd shapes must not bend the fit. So few readings as tests
# or a user's own shapes give leave terms undecided; the ridge sets those to zero.
ROUNDS = 20
LEAST_ERROR = 0.01
RIDGE = 1e-2


def signs_of(look: FirstLook, spacing: float) -> Float64 | None:
    """
    What tells the noise of a cloud, as numbers of order one: (10,); None where planes are not seen.

    Scores grow short where noise is wide, the more so the flatter a shape is; points spread about
    planes by more than the noise, the more so the more a shape is bent or the thinner its walls
    are. How scores and spreads are distributed over a cloud and over scales tells which it is, and
    how heavy their tails are tells two sides of a wall from wider noise on one.

    Parameters
    ----------
    look : at all of a cloud, or at what stands for it.
    spacing : of its points, in the network's frame, above zero.

    Returns
    -------
    Logarithms of the trimmed RMS of the scores over the spacing and of the spacing; medians of the
    spreads at the two largest scales, and the lower quartile of those about 32 points; a tenth and
    nineteen twentieths of the scores are longer than the next two; the tails of the scores, and the
    lower quartile of those of the distances from planes; and the lower quartile of the spreads at
    the smallest scale, which both sides of a wall change least.
    """
    if not look.spreads.shape[1] or not look.tails.shape[1] or not len(look.scores):
        return None
    squared = trimmed(look.scores)
    lengths = np.sqrt(np.sum(look.scores**2, axis=1))
    wide, wider = np.median(look.spreads[:, -2:], axis=0)
    nearest, near = np.percentile(look.spreads[:, :2], 25.0, axis=0)
    short, long = np.percentile(lengths, (5.0, 90.0))
    rms = np.sqrt(squared.mean())
    measured = np.array([rms, wide, wider, near, long, short, nearest]) / spacing
    first, *others, last = np.log(np.maximum(measured, LEAST_LENGTH)).tolist()
    heavy = np.sqrt(np.mean(squared**2)) / max(squared.mean(), np.finfo(np.float64).tiny)
    light = np.percentile(look.tails[:, -2], 25.0)
    return np.array([first, np.log(spacing), *others, heavy, light, last])


@dataclass(frozen=True)
class NoiseFit:
    """
    From `signs_of` a cloud to its noise: the trimmed RMS of the scores, times exp(q).

    q is a quadratic of the signs, each as -1 to 1 between the least and the greatest it was fitted
    to, and held there beyond. Models made before a sign was added do without it.

    Attributes
    ----------
    least, greatest : (F,) the range of the signs.
    factors : of 1, the signs, and their products.
    """

    least: tuple[float, ...]
    greatest: tuple[float, ...]
    factors: tuple[float, ...]

    def sigma(self, signs: Float64) -> float:
        """The noise level in the network's frame, by the first F of the signs of a cloud."""
        known = signs[: len(self.least)]
        terms = _terms(known, np.array(self.least), np.array(self.greatest))
        return float(np.exp(signs[0] + signs[1] + terms @ np.array(self.factors)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> NoiseFit:
        """Build from plain values."""
        try:
            return cls(*(tuple(values[key]) for key in ("least", "greatest", "factors")))
        except KeyError as missing:
            raise InputError(
                f"the model's fit of noise has no {missing}; make the model again "
                "from its checkpoint with `pointmend release`"
            ) from missing


def fit_noise(signs: ArrayLike, sigma: ArrayLike, weights: ArrayLike = 1.0) -> NoiseFit:
    """
    Fit what clouds of known noise show.

    Parameters
    ----------
    signs : (M, F), M >= 1. sigma : (M,) in the network's frame. weights : of each, (M,) or one.
    """
    seen, level = np.asarray(signs, dtype=np.float64), np.log(np.asarray(sigma))
    least, greatest = seen.min(axis=0), seen.max(axis=0)
    terms = _terms(seen, least, greatest)
    missing = level - seen[:, 0] - seen[:, 1]
    ridge = np.diag([0.0, *[RIDGE] * (terms.shape[1] - 1)])
    given = np.broadcast_to(np.asarray(weights, dtype=np.float64), missing.shape)
    weight = given
    for _ in range(ROUNDS):
        weighed = terms * weight[:, None]
        factors = np.linalg.solve(weighed.T @ terms + ridge, weighed.T @ missing)
        weight = given / np.maximum(np.abs(terms @ factors - missing), LEAST_ERROR)
    return NoiseFit(*(tuple(each.tolist()) for each in (least, greatest, factors)))


def _terms(signs: Float64, least: Float64, greatest: Float64) -> Float64:
    """The terms of the quadratic of signs (..., F): 1, F of them, and F (F + 1) / 2 products."""
    half = np.maximum((greatest - least) / 2.0, 1e-9)
    place = np.clip((signs - (least + greatest) / 2.0) / half, -1.0, 1.0)
    pairs = combinations_with_replacement(np.moveaxis(place, -1, 0), 2)
    products = np.stack([a * b for a, b in pairs], axis=-1)
    return np.concatenate([np.ones_like(place[..., :1]), place, products], axis=-1)

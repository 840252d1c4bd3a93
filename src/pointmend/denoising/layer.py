"""Denoising: wide noise read off the thickness of the layer it makes of a surface."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.thickness import thickness

from .thinning import lots_of

Float64 = NDArray[np.float64]
Bools = NDArray[np.bool_]

# From how many spacings on noise is wide, how many times the noise and at least how many spacings
# to look around, how often (the second time by the thickness found), and at how many places
# (training/LOG.md).
WIDE = 0.7
REACH = 3.0
LEAST_REACH = 3.3
LOOKS = 2
PLACES = 400
LEAST_PLACES = 30


def is_wide(sigma: float, spacing: float) -> bool:
    """Whether noise is so wide that scores alone do not tell it. Any one unit of length."""
    return sigma > WIDE * spacing


def layer_of(places: Sequence[tuple[Float64, Bools]], sigma: float, spacing: float) -> float | None:
    """
    How thick the layer of noise is; None where too little of it is seen.

    Parameters
    ----------
    places : points (n, 3), as the user gave them, and which of them (n,) see all around them.
    sigma : about as wide the noise is.
    spacing : of the points, in the same unit.
    """
    looked_at = []
    for points, trusted in places:
        inner = points[trusted]
        few = np.argsort(lots_of(inner), kind="stable")[: max(1, PLACES // len(places))]
        looked_at.append((points, inner[few]))
    layer = sigma
    for _ in range(LOOKS):
        radius = max(REACH * layer, LEAST_REACH * spacing)
        found = np.concatenate([thickness(points, at, radius) for points, at in looked_at])
        layer = float(np.median(found)) if len(found) >= LEAST_PLACES else 0.0
        if not layer > 0.0:
            return None
    return layer

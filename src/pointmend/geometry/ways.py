"""Geometry: what points and those around them have been moved by together."""

from __future__ import annotations

import torch
from torch import Tensor

from .planes import neighbourhood_sum, walked

# After the mean over a point's neighbours, so many more walks to neighbours, one after the other.
WALKS = (1, 2)

# Sizes of neighbourhood at which ways are taken together.
WAY_SCALES = 1 + len(WALKS)


def way_of_others(way: Tensor, neighbours: Tensor) -> Tensor:
    """
    The mean of the ways of a point's neighbours: (Q, 3).

    Parameters
    ----------
    way : (M, 3) float64, how all points have been moved.
    neighbours : (Q, K) rows of the points around each, K >= 2, itself first, which does not count:
        what it was moved by alone is noise.
    """
    others = neighbours[:, 1:].contiguous()
    return neighbourhood_sum(way, others) / others.shape[1]


def ways_together(way: Tensor, neighbours: Tensor) -> Tensor:
    """
    What points have been moved by together, in neighbourhoods of several sizes.

    Parameters
    ----------
    way : (M, 3) float64, how all points have been moved.
    neighbours : (M, K) rows, nearest first, itself first, K >= 2.

    Returns
    -------
    (M, WAY_SCALES, 3) float32
    """
    scales = [way_of_others(way, neighbours)]
    for more in WALKS:
        scales.append(walked(scales[-1], neighbours, more))
    return torch.stack(scales, dim=1).float()

"""Network: how wide the noise is, as the surroundings of every point tell it (for Eq. 15)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pointmend.chunks import in_chunks
from pointmend.geometry.local import LocalGeometry
from pointmend.geometry.planes import TAIL_SCALES

from .config import NetworkConfig
from .features import tails_input

# Whose spread about its plane an answer is relative to: that of about eighty points, whose plane is
# well known and hardly bent.
COMPARED_WITH = 2

# A spread of this size counts as 0; nothing is taken to be flatter than the least.
MIDDLE_SPREAD = 0.01
LEAST_SPREAD = 1e-5

HIDDEN = 64

# How far off (relative) a point can be taken to be, at the least and at the most: no single point
# may speak for a whole cloud.
LEAST_ERROR, MOST_ERROR = 0.02, 2.0

# Points read at once by each thread when nothing is learned.
CHUNK = 1024


class NoiseReading(nn.Module):
    """
    What every point thinks of the noise, and how far off it may be: (M, 2).

    A score says how far one point lies off the surface. Its neighbourhood knows more of the noise:
    how far points spread about planes at all scales, and how heavy their tails are, which tells the
    two sides of a thin wall from wider noise on one.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        inputs = 3 * len(config.scales) + (TAIL_SCALES if config.tails else 0)
        self.layers = nn.Sequential(
            nn.Linear(config.channels + inputs, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, 2),
        )

    def forward(self, cloud: LocalGeometry, features: Tensor, rows: Tensor) -> Tensor:
        """
        Read the noise at some points of a noisy cloud.

        Parameters
        ----------
        cloud : M points with planes.
        features : (M, channels) E of them.
        rows : (U,) the points asked.

        Returns
        -------
        (U, 2) logarithms: of sigma, and of how far off (relative) that may be.
        """
        planes = cloud.planes
        assert planes is not None

        def read(part: slice) -> Tensor:
            here = planes.rows(rows[part])
            spread = (here.spread.clamp_min(LEAST_SPREAD) / MIDDLE_SPREAD).log()
            seen = [features.index_select(0, rows[part]), spread.flatten(1), tails_input(here)]
            level, error = self.layers(torch.cat(seen, dim=1)).unbind(1)
            level = level + spread[:, COMPARED_WITH, 0] + math.log(MIDDLE_SPREAD)
            return torch.stack(
                [level, error.clamp(math.log(LEAST_ERROR), math.log(MOST_ERROR))], dim=1
            )

        return in_chunks(read, rows, CHUNK)


def reading_loss(readings: Tensor, sigma: Tensor) -> Tensor:
    """
    How unlikely the true noise is by what points say: the mean of |error| / b + log b.

    Parameters
    ----------
    readings : (Q, 2) as `NoiseReading` gives them.
    sigma : (Q,) the true noise.
    """
    level, error = readings.unbind(1)
    return ((level - sigma.log()).abs() * torch.exp(-error) + error).mean()

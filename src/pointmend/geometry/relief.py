"""Geometry: bodies covered with fine relief (waves, grooves, plateaus), at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .meshes import Mesh, vertex_normals
from .procedural import block, fitted, round_block
from .thin import log_uniform

Floats = NDArray[np.float64]

# Wavelengths in radii of the shape: from a few spacings of a cloud of 10,000 points to a limb.
# Heights are shares of the wavelength.
SHORTEST, LONGEST = 0.15, 0.6
LOWEST, HIGHEST = 0.05, 0.25
EDGES_PER_WAVE = 8.0
LEAST_HALF_SIDE = 0.4


def relief_shape(rng: np.random.Generator) -> Mesh:
    """
    A closed body that fills the unit sphere, round or with flat sides, with relief all over it.

    Collections of shapes are smooth at the distance of two points; who has seen only those takes
    relief of a few spacings for noise.
    """
    length = log_uniform(rng, SHORTEST, LONGEST)
    half = rng.uniform(LEAST_HALF_SIDE, 1.0, 3)
    cells = int(np.ceil(2.0 * EDGES_PER_WAVE / length))
    make = (block, round_block)[int(rng.integers(2))]
    body = make((cells, cells, cells), half)
    height = rng.uniform(LOWEST, HIGHEST) * length * relief(body.vertices, length, rng)
    return fitted(Mesh(body.vertices + height[:, None] * vertex_normals(body), body.faces))


def relief(points: Floats, length: float, rng: np.random.Generator) -> Floats:
    """
    Heights between -1 and 1 at points: (N, 3) -> (N,).

    Waves of one length in two to four directions. In half of all cases pressed flat at top and
    bottom, which leaves plateaus and grooves; in half of all cases fading out here and there.
    """
    waves = _waves(points, length, int(rng.integers(2, 5)), rng)
    if rng.random() < 0.5:
        waves = np.tanh(3.0 * waves)
    if rng.random() < 0.5:
        waves = waves * np.clip(0.5 + 1.5 * _waves(points, 1.5, 1, rng), 0.0, 1.0)
    return waves


def _waves(points: Floats, length: float, count: int, rng: np.random.Generator) -> Floats:
    """The mean of plane waves in random directions: (N, 3) -> (N,)."""
    directions = rng.standard_normal((count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    phases = rng.uniform(0.0, 2.0 * np.pi, count)
    heights = np.sin(2.0 * np.pi / length * points @ directions.T + phases)
    return np.asarray(heights.mean(axis=1))

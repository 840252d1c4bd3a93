"""Evaluation: the six noise patterns of the published tables, each seeded and scaled by level."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pointmend.errors import InputError
from pointmend.geometry.meshes import unit_sphere

Floats = NDArray[np.float64]
Pattern = Literal["gaussian", "laplace", "discrete", "anisotropic", "unidirectional", "uniform"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

ANISOTROPY: Floats = np.array([[1.0, -0.5, -0.25], [-0.5, 1.0, -0.25], [-0.25, -0.25, 1.0]])
"""Covariance of the anisotropic pattern at scale 1."""


def gaussian(count: int, scale: float, rng: np.random.Generator) -> Floats:
    """Isotropic Gaussian noise, ``(count, 3)``: n ~ N(0, s^2 I), standard deviation s per axis."""
    return scale * rng.standard_normal((count, 3))


def laplace(count: int, scale: float, rng: np.random.Generator) -> Floats:
    """Laplace noise, ``(count, 3)``: p(n_i) = exp(-|n_i| / s) / 2s, standard deviation sqrt(2) s.

    The scale is the parameter of the density, not the deviation, as in the published tables.
    """
    return rng.laplace(0.0, scale, (count, 3)) if scale > 0.0 else np.zeros((count, 3))


def discrete(count: int, scale: float, rng: np.random.Generator) -> Floats:
    """Discrete noise, ``(count, 3)``: n = +-s e_i with probability 0.1 for each of the six, else 0.

    Four points in ten stay where they are; the standard deviation is sqrt(0.2) s per axis.
    """
    steps = np.concatenate((np.eye(3), -np.eye(3), np.zeros((4, 3))))
    noise: Floats = scale * steps[rng.integers(len(steps), size=count)]
    return noise


def anisotropic(count: int, scale: float, rng: np.random.Generator) -> Floats:
    """Anisotropic Gaussian noise, ``(count, 3)``: n ~ N(0, s^2 C), standard deviation s per axis.

    C has ones on the diagonal, C_xy = -1/2 and C_xz = C_yz = -1/4.
    """
    noise: Floats = scale * rng.standard_normal((count, 3)) @ np.linalg.cholesky(ANISOTROPY).T
    return noise


def unidirectional(count: int, scale: float, rng: np.random.Generator) -> Floats:
    """Uni-directional Gaussian noise, ``(count, 3)``: n = (n_x, 0, 0) with n_x ~ N(0, s^2)."""
    noise: Floats = scale * rng.standard_normal((count, 1)) * np.array([1.0, 0.0, 0.0])
    return noise


def uniform(count: int, scale: float, rng: np.random.Generator) -> Floats:
    """Uniform noise in a ball, ``(count, 3)``: p(n) = 3 / (4 pi s^3) for ||n|| <= s, else 0.

    The standard deviation is s / sqrt(5) per axis.
    """
    direction = rng.standard_normal((count, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return scale * np.cbrt(rng.uniform(size=(count, 1))) * direction


_DRAW: dict[Pattern, Callable[[int, float, np.random.Generator], Floats]] = {
    "gaussian": gaussian,
    "laplace": laplace,
    "discrete": discrete,
    "anisotropic": anisotropic,
    "unidirectional": unidirectional,
    "uniform": uniform,
}


def add_noise(
    points: Floats,
    pattern: Pattern,
    level: float,
    rng: np.random.Generator,
    radius: float | None = None,
) -> Floats:
    """Add noise of one of the six patterns to a cloud.

    Parameters
    ----------
    points
        ``(N, 3)`` clean points.
    pattern
        One of `PATTERNS`; the formula stands at the function of that name.
    level
        Scale s of the noise relative to the radius, 0.01 for "1 %".
    rng
        Source of randomness; the same state gives the same noise.
    radius
        What the level is relative to; by default the radius of the points' bounding sphere
        (centre at the midpoint of their bounding box).

    Returns
    -------
    ``(N, 3)`` noisy points, in the same order.
    """
    points = np.asarray(points, dtype=np.float64)
    if pattern not in _DRAW:
        raise InputError(f"Unknown noise pattern {pattern!r}; choose one of {', '.join(PATTERNS)}.")
    if points.ndim != 2 or points.shape[1] != 3 or len(points) == 0:
        raise InputError(f"Points must be an N x 3 array with N >= 1, not of shape {points.shape}.")
    if not (np.isfinite(level) and level >= 0.0):
        raise InputError(f"The noise level must be zero or more, not {level}.")
    if radius is None:
        _, radius = unit_sphere(points)
    noise: Floats = _DRAW[pattern](len(points), level * radius, rng)
    return points + noise

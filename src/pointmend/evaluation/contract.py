"""Evaluation: what every denoiser promises, as checks that anyone can run on their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

Float64 = NDArray[np.float64]
DenoisePoints = Callable[[Float64], Float64]


@dataclass(frozen=True)
class Promise:
    """
    How closely a denoiser keeps its promises, as shares of the test cloud's noise.

    The defaults are for a denoiser that does the same for a moved cloud but for rounding. A
    network that learned to be equivariant, not built to be, states what it reaches.

    Attributes
    ----------
    rotation, translation, scale, permutation : largest RMS difference between denoising the
        changed cloud and changing the denoised one.
    clean : largest RMS displacement of a cloud without noise, as a share of its spacing.
    """

    rotation: float = 0.01
    translation: float = 0.01
    scale: float = 0.01
    permutation: float = 0.01
    clean: float = 0.25


class BrokenPromiseError(AssertionError):
    """A denoiser does not do what every denoiser here must do."""


def check_denoiser(denoise: DenoisePoints, promise: Promise | None = None) -> None:
    """
    Check a denoiser: (N, 3) -> (N, 3) against the contract.

    Count kept; input untouched; finite output for hard input; the same result twice; order kept
    (a permuted cloud gives the permuted result, so no row wanders); rigid motions and uniform
    scale lead to the moved and scaled result; a clean cloud stays nearly as it is.

    Raises
    ------
    BrokenPromiseError
        Naming the promise and by how much it was missed.
    """
    promise = promise or Promise()
    rng = np.random.default_rng(0)
    clean = _dented_sphere(1500)
    sigma = 0.02
    noisy = clean + sigma * rng.standard_normal(clean.shape)

    before = noisy.copy()
    first = denoise(noisy)
    _demand(np.array_equal(noisy, before), "the input was changed")
    _demand(first.shape == noisy.shape, f"{noisy.shape} points went in, {first.shape} came out")
    _demand(np.array_equal(denoise(noisy), first), "two runs gave two results")

    def compare(name: str, found: Float64, expected: Float64, allowed: float) -> None:
        share = float(np.sqrt(np.mean(np.sum((found - expected) ** 2, axis=1)))) / sigma
        _demand(share <= allowed, f"{name}: off by {share:.4f} of the noise, {allowed} allowed")

    order = rng.permutation(len(noisy))
    compare("permutation", denoise(noisy[order]), first[order], promise.permutation)
    turn = Rotation.random(random_state=1).as_matrix()
    compare("rotation", denoise(noisy @ turn.T) @ turn, first, promise.rotation)
    shift = np.array([5e5, 5e6, 1e3])
    compare("translation", denoise(noisy + shift) - shift, first, promise.translation)
    compare("scale", denoise(1000.0 * noisy) / 1000.0, first, promise.scale)

    spacing = float(np.sqrt(4.0 * np.pi / len(clean)))
    moved = float(np.sqrt(np.mean(np.sum((denoise(clean) - clean) ** 2, axis=1)))) / spacing
    _demand(moved <= promise.clean, f"a clean cloud moved by {moved:.3f} of its spacing")

    for name, points in hard_clouds().items():
        found = denoise(points)
        _demand(found.shape == points.shape, f"{name}: count not kept")
        _demand(bool(np.isfinite(found).all()), f"{name}: output is not finite")


def hard_clouds() -> dict[str, Float64]:
    """Finite clouds that break careless code, by name."""
    rng = np.random.default_rng(5)
    line = np.outer(np.linspace(0.0, 1.0, 300), [1.0, 2.0, 3.0])
    return {
        "no point": np.zeros((0, 3)),
        "one point": np.array([[1.0, 2.0, 3.0]]),
        "two points": np.eye(3)[:2],
        "five points": rng.random((5, 3)),
        "all in one place": np.full((400, 3), 7.0),
        "every point twice": np.repeat(rng.random((150, 3)), 2, axis=0),
        "collinear": line,
        "coplanar": rng.random((300, 3)) * [1.0, 1.0, 0.0],
        "one far outlier": np.vstack([rng.random((300, 3)), [[1e6, 0.0, 0.0]]]),
        "two densities": np.vstack([1e-3 * rng.random((200, 3)), rng.random((200, 3))]),
        "tiny": 1e-12 * rng.random((200, 3)),
        "huge": 1e12 * rng.random((200, 3)),
    }


def _dented_sphere(count: int) -> Float64:
    """An evenly sampled closed surface without symmetry: (count, 3)."""
    index = np.arange(count) + 0.5
    height = 1.0 - 2.0 * index / count
    angle = np.pi * (1.0 + np.sqrt(5.0)) * index
    ring = np.sqrt(1.0 - height**2)
    sphere = np.stack([ring * np.cos(angle), ring * np.sin(angle), height], axis=1)
    dent = 1.0 + 0.1 * np.sin(2.0 * sphere[:, :1] + 1.0) * np.cos(3.0 * sphere[:, 1:2])
    return np.asarray(sphere * dent, dtype=np.float64)


def _demand(kept: bool, message: str) -> None:
    """Raise unless the promise was kept."""
    if not kept:
        raise BrokenPromiseError(message)

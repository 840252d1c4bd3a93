"""Geometry: bodies with limbs, and frames of bars, at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .implicit import from_box, joined, mesh_of
from .thin import Walls, log_uniform

Floats = NDArray[np.float64]

# Radii and lengths in the cube from -1 to 1. The thinnest limb still takes four cells across.
CELLS = 192
THINNEST, THICKEST = 0.02, 0.09
BODY = (0.08, 0.25)
LIMBS = (4, 10)
LENGTH = (0.3, 1.2)
SEGMENTS = (2, 5)
REACH = 0.8
# How far what is joined blends into each other, in radii of the limb.
BLEND = (0.3, 2.0)
BARS = (5, 12)


def limb_shape(rng: np.random.Generator) -> Walls:
    """
    A closed shape that fills the unit sphere: a body with limbs, or a frame of bars.

    Legs, horns, fingers, bars of chairs: who has not seen such under noise about as wide as they
    are thick presses them to a line. `Walls.thinnest` is their least diameter.
    """
    walls = _creature(rng) if rng.random() < 0.7 else _frame(rng)
    return walls.fitted()


def _creature(rng: np.random.Generator) -> Walls:
    """A body, and limbs that walk away from it at random, growing thinner."""
    spine = _walk(np.zeros(3), rng.uniform(0.15, 0.3), 2, rng)
    bones = [_tapered(spine, *rng.uniform(*BODY, 2))]
    thinnest = np.inf
    for _ in range(int(rng.integers(*LIMBS))):
        # Most limbs begin at the body, some at another limb.
        joints = bones[0] if rng.random() < 0.7 else bones[int(rng.integers(len(bones)))]
        start = joints[int(rng.integers(len(joints))), 3:6]
        count = int(rng.integers(*SEGMENTS))
        path = _walk(start, rng.uniform(*LENGTH) / count, count, rng)
        end = log_uniform(rng, THINNEST, THICKEST)
        bones.append(_tapered(path, end * rng.uniform(1.0, 2.5), end))
        thinnest = min(thinnest, 2.0 * end)
    cones, blend = np.concatenate(bones), rng.uniform(*BLEND) * 0.5 * thinnest
    return Walls(mesh_of(lambda x: _blended(x, cones, blend), CELLS), thinnest)


def _walk(start: Floats, length: float, count: int, rng: np.random.Generator) -> Floats:
    """Joints (count + 1, 3) of a path that bends at each and stays within reach."""
    joints, way = [start], direction(rng)
    for _ in range(count):
        way = way + 0.6 * direction(rng)
        way /= np.linalg.norm(way)
        joints.append(np.clip(joints[-1] + length * way, -REACH, REACH))
    return np.array(joints)


def direction(rng: np.random.Generator) -> Floats:
    """A unit vector (3,), all directions as likely."""
    way = rng.standard_normal(3)
    result: Floats = way / np.linalg.norm(way)
    return result


def _tapered(joints: Floats, first: float, last: float) -> Floats:
    """Cones (n, 8) along joints (n + 1, 3): both ends, and the radius at each."""
    radii = np.linspace(first, last, len(joints))
    return np.column_stack([joints[:-1], joints[1:], radii[:-1], radii[1:]])


def _blended(x: Floats, cones: Floats, blend: float) -> Floats:
    """Distances (N,) of points (N, 3) from round cones (n, 8) that run into one another."""
    result = np.full(len(x), 4.0)
    for cone in cones:
        start, along = cone[:3], cone[3:6] - cone[:3]
        share = np.clip((x - start) @ along / max(along @ along, 1e-12), 0.0, 1.0)
        radius = cone[6] + share * (cone[7] - cone[6])
        off = x - start - share[:, None] * along
        far = np.sqrt(np.einsum("ij,ij->i", off, off)) - radius
        result = joined(result, far, blend)
    return result


def _frame(rng: np.random.Generator) -> Walls:
    """Bars along the three axes, each from one side of another to somewhere."""
    half = log_uniform(rng, THINNEST, THICKEST)
    rounded = half * rng.uniform(0.0, 1.0)
    bars: list[tuple[Floats, Floats]] = []
    at, axis = rng.uniform(-0.5, 0.5, 3), int(rng.integers(3))
    for _ in range(int(rng.integers(*BARS))):
        ends = np.sort(rng.uniform(-REACH, REACH, 2))
        low, high = at.copy(), at.copy()
        low[axis], high[axis] = min(ends[0], at[axis]), max(ends[1], at[axis])
        width = half * rng.uniform(1.0, 2.0, 3)
        bars.append((0.5 * (low + high), 0.5 * (high - low) + width))
        on = bars[int(rng.integers(len(bars)))]
        at = rng.uniform(on[0] - on[1], on[0] + on[1])
        axis = (axis + int(rng.integers(1, 3))) % 3
    return Walls(mesh_of(lambda x: _boxes(x, bars, rounded), CELLS), 2.0 * half)


def _boxes(x: Floats, bars: list[tuple[Floats, Floats]], rounded: float) -> Floats:
    """Distances (N,) of points (N, 3) from boxes (middle, half sides) with rounded edges."""
    result = np.full(len(x), 4.0)
    for middle, half in bars:
        result = np.minimum(result, from_box(x - middle, half, rounded))
    return result

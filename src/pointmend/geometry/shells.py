"""Geometry: cast parts at random: shells with fillets, ribs, bosses and holes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .implicit import BLOCK, Distance, from_box, joined, mesh_of
from .limbs import direction
from .thin import Walls, log_uniform

Floats = NDArray[np.float64]

# Lengths in the cube from -1 to 1. A wall takes at least so many cells across, so that the least
# fillet has one to be seen in: a grid that suits the thinnest walls is slow and large for others.
CELLS_ACROSS = 3
THINNEST, THICKEST = 0.024, 0.08
HALF_SIDES = (0.25, 0.75)
BLOCKS = (1, 5)
RIBS = (0, 5)
BOSSES = (0, 4)
HOLES = (0, 4)
BOSS_RADIUS = (0.05, 0.15)
# How round edges are, and how far what is joined blends into each other, in walls.
FILLET = (0.3, 3.0)


def shell_shape(rng: np.random.Generator) -> Walls:
    """
    A closed shape that fills the unit sphere: a body hollowed out to walls, open on one side.

    Ribs and bosses stand within it and holes go through it, as in parts that are cast. Where all
    sides come in pairs nothing tells the noise but how the pairs end. `Walls.thinnest` is the wall.
    """
    wall = log_uniform(rng, THINNEST, THICKEST)
    fillet = wall * rng.uniform(*FILLET)
    body = _body(fillet, rng)
    ribs = [_rib(wall, rng) for _ in range(int(rng.integers(*RIBS)))]
    bosses = [_pillar(rng) for _ in range(int(rng.integers(*BOSSES)))]
    holes = [_pillar(rng) for _ in range(int(rng.integers(*HOLES)))]
    opening, depth = direction(rng), rng.uniform(-0.1, 0.4)

    def part(x: Floats) -> Floats:
        outside = body(x)
        result = np.maximum(outside, -outside - wall)
        for inner in (*ribs, *bosses):
            result = joined(result, np.maximum(outside, inner(x)), fillet)
        for hole in holes:
            result = np.maximum(result, -hole(x))
        return np.maximum(result, x @ opening - depth)

    blocks = math.ceil(CELLS_ACROSS * 2.0 / wall / BLOCK)
    return Walls(mesh_of(part, BLOCK * blocks), wall).fitted()


def _body(fillet: float, rng: np.random.Generator) -> Distance:
    """Blocks with rounded edges that overlap and run into one another, each turned its own way."""
    blocks = []
    at = np.zeros(3)
    for _ in range(int(rng.integers(*BLOCKS))):
        half = rng.uniform(*HALF_SIDES, 3)
        axes = np.linalg.qr(rng.standard_normal((3, 3)))[0] if rng.random() < 0.5 else np.eye(3)
        blocks.append((at, axes, half, min(fillet, 0.9 * float(half.min()))))
        at = np.clip(at + rng.uniform(-0.8, 0.8, 3) * half, -0.35, 0.35)

    def distance(x: Floats) -> Floats:
        result = np.full(len(x), 4.0)
        for middle, axes, half, rounded in blocks:
            result = joined(result, from_box((x - middle) @ axes, half, rounded), fillet)
        # What reaches beyond the grid would be cut off without a wall.
        return np.asarray(np.maximum(result, np.abs(x).max(axis=1) - 0.95))

    return distance


def _rib(wall: float, rng: np.random.Generator) -> Distance:
    """A plate across all of the body."""
    across, at, half = direction(rng), rng.uniform(-0.3, 0.3), 0.5 * wall * rng.uniform(1.0, 1.6)
    return lambda x: np.abs(x @ across - at) - half


def _pillar(rng: np.random.Generator) -> Distance:
    """A cylinder through all of the body."""
    along, at, radius = direction(rng), rng.uniform(-0.4, 0.4, 3), rng.uniform(*BOSS_RADIUS)

    def distance(x: Floats) -> Floats:
        off = x - at
        off = off - (off @ along)[:, None] * along
        return np.asarray(np.linalg.norm(off, axis=1) - radius)

    return distance

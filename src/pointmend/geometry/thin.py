"""Geometry: thin-walled shapes (sheets, ribs, hollow blocks, tubes) and solid ones, at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .meshes import Mesh, unit_sphere
from .procedural import angles, block, fitted, swept

Floats = NDArray[np.float64]

# Walls and the gaps between them, in radii of the shape. Below twice the noise two sides can be
# told apart only by who knows how wide the noise is.
THINNEST, THICKEST = 0.025, 0.15
NARROWEST_GAP, WIDEST_GAP = 0.06, 0.4
LONGEST_EDGE = 0.06
MOST_BEND = 0.25
LEAST_HALF_SIDE, MOST_HALF_SIDE = 0.3, 0.9


@dataclass(frozen=True)
class Walls:
    """A closed mesh, and the thickness of its thinnest wall or gap (before it is bent)."""

    mesh: Mesh
    thinnest: float

    def fitted(self) -> Walls:
        """Moved and scaled to fill the unit sphere."""
        _, radius = unit_sphere(self.mesh.vertices)
        return Walls(fitted(self.mesh), self.thinnest / radius)


def thin_shape(rng: np.random.Generator) -> Walls:
    """A closed thin-walled shape that fills the unit sphere."""
    kind = (_sheet, _ribs, _hollow_block, _tube)[int(rng.integers(4))]
    walls = kind(rng)
    return Walls(_bent(walls.mesh, rng), walls.thinnest).fitted()


def solid_shape(rng: np.random.Generator) -> Mesh:
    """
    A block that fills the unit sphere: sides like those of `thin_shape`, and nothing behind them.

    Who sees such sides only in pairs learns that a flat side under wide noise is two.
    """
    return fitted(_bent(_block(rng.uniform(LEAST_HALF_SIDE, MOST_HALF_SIDE, 3)), rng))


def _sheet(rng: np.random.Generator) -> Walls:
    """One plate."""
    sides, wall = rng.uniform(0.4, 1.0, 2), _wall(rng)
    return Walls(_plate(sides, wall), wall)


def _ribs(rng: np.random.Generator) -> Walls:
    """Plates side by side, all of one size."""
    sides = rng.uniform(0.4, 0.9, 2)
    plates, height, thinnest = [], 0.0, np.inf
    for _ in range(int(rng.integers(2, 6))):
        wall = _wall(rng)
        plate = _plate(sides, wall)
        plates.append(Mesh(plate.vertices + np.array([0.0, 0.0, height + 0.5 * wall]), plate.faces))
        gap = log_uniform(rng, NARROWEST_GAP, WIDEST_GAP)
        height += wall + gap
        thinnest = min(thinnest, wall, gap)
    return Walls(_together(plates), thinnest)


def _hollow_block(rng: np.random.Generator) -> Walls:
    """A block with a cavity: walls of one thickness all around."""
    half, wall = rng.uniform(0.3, 0.8, 3), _wall(rng)
    inner = _block(half - wall)
    return Walls(_together([_block(half), Mesh(inner.vertices, inner.faces[:, ::-1])]), wall)


def _tube(rng: np.random.Generator) -> Walls:
    """A pipe, open at both ends."""
    outer, half, wall = rng.uniform(0.3, 0.9), rng.uniform(0.3, 0.9), _wall(rng)
    inner = outer - wall
    corners = np.array([(outer, -half), (outer, half), (inner, half), (inner, -half)])
    sides = []
    for start, end in zip(corners, np.roll(corners, -1, axis=0)):
        cells = _cells(float(np.linalg.norm(end - start)))
        sides.append(start + (end - start) * (np.arange(cells) / cells)[:, None])
    distance, height = np.concatenate(sides).T
    return Walls(swept(angles(_cells(2.0 * np.pi * outer))[:, None], distance, height), wall)


def _plate(half: Floats, wall: float) -> Mesh:
    """A plate with half sides (2,), as thick as a wall."""
    return _block(np.array([half[0], half[1], 0.5 * wall]))


def _block(half: Floats) -> Mesh:
    """A block with half sides (3,) in cells that can be bent."""
    x, y, z = (_cells(2.0 * float(side)) for side in half)
    return block((x, y, z), half)


def _cells(length: float) -> int:
    return max(2, int(np.ceil(length / LONGEST_EDGE)))


def _wall(rng: np.random.Generator) -> float:
    return log_uniform(rng, THINNEST, THICKEST)


def log_uniform(rng: np.random.Generator, least: float, most: float) -> float:
    """A length between two, any factor as likely as any other."""
    return float(np.exp(rng.uniform(np.log(least), np.log(most))))


def _bent(mesh: Mesh, rng: np.random.Generator) -> Mesh:
    """Half of all shapes are bent: moved along one axis by waves along the others."""
    if rng.random() < 0.5:
        return mesh
    along = np.roll([0, 1, 2], int(rng.integers(3)))
    vertices = mesh.vertices.copy()
    for axis in along[1:]:
        phase = rng.uniform(0.0, 2.0 * np.pi) + rng.uniform(1.0, 4.0) * mesh.vertices[:, axis]
        vertices[:, along[0]] += rng.uniform(0.0, MOST_BEND) * np.sin(phase)
    return Mesh(vertices, mesh.faces)


def _together(meshes: Sequence[Mesh]) -> Mesh:
    """Meshes that do not touch, as one."""
    before = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + first for mesh, first in zip(meshes, before)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces))

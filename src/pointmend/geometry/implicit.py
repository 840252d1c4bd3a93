"""Geometry: closed meshes of surfaces that are known by a distance alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from .meshes import Mesh

Floats = NDArray[np.float64]
Distance = Callable[[Floats], Floats]

# Corners are looked at in blocks of so many first: a block that lies farther from the surface than
# it is wide has none of it.
BLOCK = 4
# Vertices begin in the middle of their cells; each step brings them nearer to the surface, and none
# goes farther than half a cell, so that faces do not fold.
STEPS = 2
SLOPE_OVER = 0.1


def mesh_of(distance: Distance, cells: int) -> Mesh:
    """
    The surface where a distance vanishes, in the cube from -1 to 1, by surface nets.

    One vertex in every cell that the surface passes, moved onto it; one quadrilateral around every
    edge of the grid that it crosses. Edges of the surface are rounded by about a cell.

    Parameters
    ----------
    distance : (N, 3) -> (N,), negative inside; its slope nowhere exceeds one.
    cells : of the grid along each axis, a multiple of BLOCK.
    """
    inside = _inside(distance, cells)
    corners = [inside[tuple(slice(o, cells + o) for o in at)] for at in product((0, 1), repeat=3)]
    passed = np.logical_or.reduce(corners) & ~np.logical_and.reduce(corners)
    number = np.full(passed.shape, -1, dtype=np.int64)
    number[passed] = np.arange(np.count_nonzero(passed))
    quads = np.concatenate([_quads(inside, number, axis) for axis in range(3)])
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    width = 2.0 / cells
    return Mesh(_onto(distance, _middles(np.argwhere(passed), cells), width), faces)


def joined(one: Floats, other: Floats, blend: float) -> Floats:
    """Distances (N,) from two bodies as one that blends where both are about as far (above 0)."""
    overlap = np.maximum(blend - np.abs(one - other), 0.0)
    return np.asarray(np.minimum(one, other) - overlap**2 / (4.0 * blend))


def from_box(x: Floats, half: Floats, rounded: float) -> Floats:
    """Distances (N,) of points (N, 3) from a box of half sides (3,) whose edges are rounded."""
    beyond = np.abs(x) - (half - rounded)
    outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=1)
    return np.asarray(outside + np.minimum(beyond.max(axis=1), 0.0) - rounded)


def _middles(index: NDArray[np.int64], cells: int) -> Floats:
    """The middles (N, 3) of cells (N, 3) of a grid with so many along each axis."""
    return (2.0 / cells) * (index.astype(np.float64) + 0.5) - 1.0


def _inside(distance: Distance, cells: int) -> NDArray[np.bool_]:
    """Which corners of the grid lie inside: (cells + 1,) * 3; those of the outermost never do."""
    count = cells // BLOCK
    width = 2.0 / count
    at_middle = distance(_middles(np.indices((count,) * 3).reshape(3, -1).T, count))
    inside = np.zeros((cells + 1,) * 3, dtype=bool)
    inside[:-1, :-1, :-1] = np.kron(
        (at_middle < 0.0).reshape((count,) * 3), np.ones((BLOCK,) * 3, dtype=bool)
    )
    near = np.argwhere((np.abs(at_middle) < np.sqrt(3.0) * width / 2.0).reshape((count,) * 3))
    steps = np.indices((BLOCK,) * 3).reshape(3, -1).T
    index = (BLOCK * near[:, None] + steps).reshape(-1, 3)
    inside[tuple(index.T)] = distance(2.0 * index / cells - 1.0) < 0.0
    inside[0], inside[:, 0], inside[:, :, 0] = False, False, False
    return inside


def _quads(inside: NDArray[np.bool_], number: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
    """The four cells (Q, 4) around each edge along an axis that the surface crosses."""
    unit = np.eye(3, dtype=np.int64)
    first, second = unit[(axis + 1) % 3], unit[(axis + 2) % 3]
    inner = [slice(1, -1)] * 3
    begin, end = inner.copy(), inner.copy()
    begin[axis], end[axis] = slice(None, -1), slice(1, None)
    crossed = inside[tuple(begin)] ^ inside[tuple(end)]
    edge = np.argwhere(crossed) + (1 - unit[axis])
    around = [edge - first - second, edge - second, edge, edge - first]
    quads = np.stack([number[tuple(cell.T)] for cell in around], axis=1)
    outwards = inside[tuple(edge.T)]
    return np.concatenate([quads[outwards], quads[~outwards][:, ::-1]])


def _onto(distance: Distance, points: Floats, width: float) -> Floats:
    """Points (N, 3) moved onto the surface, no coordinate by more than half a cell's width."""
    begun, step = points, SLOPE_OVER * width
    for _ in range(STEPS):
        slope = np.stack(
            [
                (distance(points + step * axis) - distance(points - step * axis)) / (2.0 * step)
                for axis in np.eye(3)
            ],
            axis=1,
        )
        square = np.maximum(np.sum(slope**2, axis=1), 0.1)
        moved = points - (distance(points) / square)[:, None] * slope
        points = np.clip(moved, begun - 0.5 * width, begun + 0.5 * width)
    return points

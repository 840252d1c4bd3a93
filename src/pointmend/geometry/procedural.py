"""Geometry: closed shapes made from formulas, free to ship, for tests, demos and pictures."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.meshes import Mesh, unit_sphere

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def torus(around: int = 120, across: int = 60, thickness: float = 0.4) -> Mesh:
    """A smooth ring; ``thickness`` is the tube's radius over the ring's."""
    u, w = angles(around)[:, None], angles(across)[None, :]
    return fitted(swept(u, 1.0 + thickness * np.cos(w), thickness * np.sin(w)))


def knot(around: int = 240, across: int = 30, thickness: float = 0.32) -> Mesh:
    """A trefoil knot: a smooth tube that passes close to itself."""
    t = angles(around)
    curve = np.stack(
        (np.sin(t) + 2.0 * np.sin(2.0 * t), np.cos(t) - 2.0 * np.cos(2.0 * t), -np.sin(3.0 * t)),
        axis=1,
    )
    velocity = np.stack(
        (np.cos(t) + 4.0 * np.cos(2.0 * t), -np.sin(t) + 4.0 * np.sin(2.0 * t), -3 * np.cos(3 * t)),
        axis=1,
    )
    bend = np.stack(
        (-np.sin(t) - 8.0 * np.sin(2.0 * t), -np.cos(t) + 8.0 * np.cos(2.0 * t), 9 * np.sin(3 * t)),
        axis=1,
    )
    tangent = _unit(velocity)
    binormal = _unit(np.cross(velocity, bend))
    normal = np.cross(binormal, tangent)
    w = angles(across)[None, :, None]
    tube = thickness * (np.cos(w) * normal[:, None] - np.sin(w) * binormal[:, None])
    return fitted(_closed_grid(curve[:, None] + tube))


def gear(teeth: int = 12, steps_per_tooth: int = 20, layers: int = 8) -> Mesh:
    """A toothed wheel with a bore: flat sides, sharp edges everywhere."""
    phase = (np.arange(teeth * steps_per_tooth) % steps_per_tooth) / steps_per_tooth
    # Flank up, tip, flank down, root: a trapezium whose flanks take a fifth of a tooth each.
    height = np.clip(np.minimum(phase, 0.7 - phase) / 0.2, 0.0, 1.0)
    outer = (0.8 + 0.2 * height)[:, None]
    inner, half = 0.35, 0.22
    ramp = np.arange(layers) / layers
    # The rectangle bottom, outside, top, bore as one closed line of 4 x layers points.
    across = np.concatenate((ramp, np.ones(layers), 1.0 - ramp, np.zeros(layers)))
    up = np.concatenate((-np.ones(layers), 2.0 * ramp - 1.0, np.ones(layers), 1.0 - 2.0 * ramp))
    u = angles(len(phase))[:, None]
    return fitted(swept(u, inner + (outer - inner) * across, half * up))


def demo_shape(around: int = 160, across: int = 48) -> Mesh:
    """A twisted ring, square in section with sharp edges on one side, round on the other."""
    u, w = angles(around)[:, None], angles(across)[None, :]
    circle = np.stack((np.cos(w), np.sin(w)), axis=-1)
    square = circle / np.abs(circle).max(axis=-1, keepdims=True)
    roundness = (0.5 - 0.5 * np.cos(u))[..., None]
    section = (1.0 - roundness) * 0.85 * square + roundness * circle
    turn = u[..., None]  # one full turn on the way round
    sideways = np.cos(turn) * section[..., :1] - np.sin(turn) * section[..., 1:]
    upwards = np.sin(turn) * section[..., :1] + np.cos(turn) * section[..., 1:]
    return fitted(swept(u, 1.0 + 0.42 * sideways[..., 0], 0.42 * upwards[..., 0]))


def box(cells: int = 30) -> Mesh:
    """A cube with sharp edges."""
    return fitted(block((cells, cells, cells), np.ones(3)))


def thin_plate(cells: int = 64) -> Mesh:
    """A plate a fiftieth as thick as it is long: two sheets 3 % of the sphere's radius apart."""
    return fitted(block((cells, cells * 3 // 4, 2), np.array([1.0, 0.75, 0.02])))


def rounded_box(cells: int = 36, rounding: float = 0.35) -> Mesh:
    """A block with flat sides and rounded edges; ``rounding`` is the radius over the half side."""
    cube = block((cells, cells, cells), np.ones(3))
    core = np.clip(cube.vertices, rounding - 1.0, 1.0 - rounding)
    return fitted(Mesh(core + rounding * _unit(cube.vertices - core), cube.faces))


def bumpy_sphere(cells: int = 36, height: float = 0.12) -> Mesh:
    """A sphere with smooth bumps; ``height`` is theirs over the sphere's radius."""
    sphere = round_block((cells, cells, cells), np.ones(3))
    direction = sphere.vertices
    x, y, z = (6.0 * direction).T
    bumps = np.sin(x) * np.sin(y + 0.5) + np.sin(y) * np.sin(z + 0.5) + np.sin(z) * np.sin(x + 0.5)
    return fitted(Mesh((1.0 + height * bumps)[:, None] * direction, sphere.faces))


SHAPES: dict[str, Callable[[], Mesh]] = {
    "bumpy_sphere": bumpy_sphere,
    "torus": torus,
    "knot": knot,
    "box": box,
    "rounded_box": rounded_box,
    "thin_plate": thin_plate,
    "gear": gear,
    "demo_shape": demo_shape,
}
"""Every shape by name; each is closed, deterministic and fills the unit sphere."""


def angles(count: int) -> Floats:
    """Equal steps once round, from zero."""
    return np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)


def _unit(vectors: Floats) -> Floats:
    unit: Floats = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit


def fitted(mesh: Mesh) -> Mesh:
    """Moved and scaled to fill the unit sphere."""
    centre, radius = unit_sphere(mesh.vertices)
    return Mesh((mesh.vertices - centre) / radius, mesh.faces)


def swept(u: Floats, radius: Floats, height: Floats) -> Mesh:
    """A grid ``(U, W)`` of distances from and heights along the z axis, swept round it by ``u``."""
    grid = np.broadcast_arrays(radius * np.cos(u), radius * np.sin(u), height)
    return _closed_grid(np.stack(grid, axis=-1))


def _closed_grid(points: Floats) -> Mesh:
    """Join a grid of points ``(U, W, 3)`` that closes upon itself in both directions."""
    index = np.arange(points.shape[0] * points.shape[1]).reshape(points.shape[:2])
    right = np.roll(index, -1, axis=0)
    above = np.roll(index, -1, axis=1)
    across = np.roll(right, -1, axis=1)
    return Mesh(points.reshape(-1, 3), _two_triangles(index, right, across, above))


def _two_triangles(a: Ints, b: Ints, c: Ints, d: Ints) -> Ints:
    """Cut quadrilaterals a b c d (arrays of indices of one shape) into triangles."""
    first = np.stack((a, b, c), axis=-1).reshape(-1, 3)
    second = np.stack((a, c, d), axis=-1).reshape(-1, 3)
    return np.stack((first, second), axis=1).reshape(-1, 3)


def round_block(cells: tuple[int, int, int], half: Floats) -> Mesh:
    """An ellipsoid with half axes ``half``, from a block's cells."""
    cube = block(cells, np.ones(3))
    # Cells of equal angle, not of equal side, come out nearly equal on the sphere.
    return Mesh(half * _unit(np.tan(0.25 * np.pi * cube.vertices)), cube.faces)


def block(cells: tuple[int, int, int], half: Floats) -> Mesh:
    """The surface of a block cut into cells, from ``-half`` to ``half``, no vertex twice."""
    quads: list[Ints] = []
    for axis in range(3):
        first, second = (axis + 1) % 3, (axis + 2) % 3
        i, j = np.meshgrid(np.arange(cells[first]), np.arange(cells[second]), indexing="ij")
        for side in (0, cells[axis]):
            quad = np.empty((i.size, 4, 3), dtype=np.int64)
            quad[:, :, axis] = side
            steps = ((0, 0), (1, 0), (1, 1), (0, 1)) if side else ((0, 0), (0, 1), (1, 1), (1, 0))
            for corner, (right, up) in enumerate(steps):
                quad[:, corner, first] = i.ravel() + right
                quad[:, corner, second] = j.ravel() + up
            quads.append(quad)
    lattice, index = np.unique(np.concatenate(quads).reshape(-1, 3), axis=0, return_inverse=True)
    faces = _two_triangles(*index.reshape(-1, 4).T)
    return Mesh(half * (2.0 * lattice / np.array(cells) - 1.0), faces)

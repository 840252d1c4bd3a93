"""Geometry: triangle meshes, read from files, measured, and sampled evenly."""

import warnings
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.errors import FileFormatError, InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MESH_SUFFIXES = (".off", ".obj", ".ply", ".stl")


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh.

    Attributes
    ----------
    vertices
        ``(V, 3)`` float64, finite.
    faces
        ``(F, 3)`` int64 indices into the vertices, F >= 1.
    """

    vertices: Floats
    faces: Ints

    def __post_init__(self) -> None:
        vertices = np.ascontiguousarray(self.vertices, dtype=np.float64)
        faces = np.ascontiguousarray(self.faces, dtype=np.int64)
        if vertices.ndim != 2 or vertices.shape[1] != 3:
            raise InputError(f"Mesh vertices must be a V x 3 array, not {vertices.shape}.")
        if faces.size == 0:
            raise InputError("The mesh has no faces; a surface is needed, not only points.")
        if faces.ndim != 2 or faces.shape[1] != 3:
            raise InputError(f"Mesh faces must be triangles, an F x 3 array, not {faces.shape}.")
        if faces.min() < 0 or faces.max() >= len(vertices):
            raise InputError(
                f"A face refers to vertex {faces.min() if faces.min() < 0 else faces.max()}, "
                f"but the mesh has {len(vertices)} vertices (0 to {len(vertices) - 1})."
            )
        if not np.isfinite(vertices).all():
            raise InputError("The mesh has vertices that are not finite numbers.")
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)

    @property
    def corners(self) -> Floats:
        """``(F, 3, 3)``: face, corner, coordinate."""
        return self.vertices[self.faces]


def unit_sphere(vertices: Floats) -> tuple[Floats, float]:
    """Centre and radius of the sphere the benchmark normalises by.

    The centre is the midpoint of the axis-aligned bounding box (not the centroid), the radius the
    largest distance to it.

    Parameters
    ----------
    vertices
        ``(N, 3)`` points or vertices.

    Returns
    -------
    Centre ``(3,)`` and radius.
    """
    vertices = np.asarray(vertices, dtype=np.float64)
    centre: Floats = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    offset = vertices - centre
    return centre, float(np.sqrt(np.einsum("ni,ni->n", offset, offset).max()))


def face_normals(mesh: Mesh) -> Floats:
    """Unit normals of the faces by the right-hand rule, ``(F, 3)``; zero for degenerate faces."""
    normal = _area_vectors(mesh)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    unit: Floats = normal / np.where(length > 0.0, length, 1.0)
    return unit


def vertex_normals(mesh: Mesh) -> Floats:
    """``(V, 3)`` unit normals of the vertices: those around each, weighed by their areas."""
    sums = np.zeros_like(mesh.vertices)
    np.add.at(sums, mesh.faces, _area_vectors(mesh)[:, None])
    normals: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-300)
    return normals


def face_areas(mesh: Mesh) -> Floats:
    """Areas of the faces, ``(F,)``."""
    area: Floats = np.linalg.norm(_area_vectors(mesh), axis=1)
    return area


def sample_surface(mesh: Mesh, count: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Points strewn at random on a surface, uniform by area.

    Parameters
    ----------
    mesh
        The surface; some area is needed.
    count
        Number of points N.
    rng
        Source of randomness.

    Returns
    -------
    Points ``(N, 3)`` and the faces they lie on ``(N,)``.
    """
    if count < 1:
        raise InputError(f"The number of points to sample must be at least 1, not {count}.")
    upto = np.cumsum(face_areas(mesh))
    if upto[-1] <= 0.0:
        raise InputError("The mesh has no area, so no points can be sampled from it.")
    # The search is to the right of equal sums, so a face without area is never drawn.
    face = np.searchsorted(upto, rng.uniform(0.0, upto[-1], count), side="right")
    face = np.minimum(face, len(upto) - 1)
    a, b, c = np.moveaxis(mesh.corners[face], 1, 0)
    root = np.sqrt(rng.uniform(size=(count, 1)))
    share = rng.uniform(size=(count, 1))
    points: Floats = a + root * ((1.0 - share) * (b - a) + share * (c - a))
    return points, face.astype(np.int64)


def poisson_disk(mesh: Mesh, count: int, rng: np.random.Generator, oversampling: int = 5) -> Floats:
    """Exactly ``count`` points spread evenly over a surface.

    Sample elimination after Yuksel, "Sample Elimination for Generating Poisson Disk Sample Sets"
    (2015): strew too many points at random, then remove the most crowded one until ``count`` are
    left. With r the radius of the densest packing of ``count`` discs on the area, a neighbour at
    distance d < 2r crowds a point by (1 - max(d, d_min) / 2r)^8.

    Parameters
    ----------
    mesh
        The surface; some area is needed.
    count
        Number of points N.
    rng
        Source of randomness.
    oversampling
        Candidates per point kept; more is slower and hardly more even.

    Returns
    -------
    ``(N, 3)`` points, in no particular order.
    """
    candidates, _ = sample_surface(mesh, oversampling * count, rng)
    reach = 2.0 * float(np.sqrt(face_areas(mesh).sum() / (2.0 * np.sqrt(3.0) * count)))
    least = reach * (1.0 - (1.0 / oversampling) ** 1.5) * 0.65
    kept = _eliminate(candidates, count, reach, least)
    return candidates[kept]


def _eliminate(candidates: Floats, count: int, reach: float, least: float) -> Ints:
    """
    Indices of ``count`` candidates left after removing the most crowded one again and again.

    Crowding only ever falls, so who is more crowded than all its neighbours goes before any of
    them, whatever happens elsewhere. And as many as are still to go lie at or above some crowding:
    of those every such one does go. All of them are removed at once.
    """
    total = left = len(candidates)
    pairs = cKDTree(candidates).query_pairs(reach, output_type="ndarray")
    gap = np.linalg.norm(candidates[pairs[:, 0]] - candidates[pairs[:, 1]], axis=1)
    crowding = (1.0 - np.clip(gap, least, reach) / reach) ** 8
    one, other = pairs.T.copy()

    def crowded(by_one: Ints, by_other: Ints) -> Floats:
        """How much pairs (rows of them) crowd their other, and their one end: (total,)."""
        at_other = np.bincount(other[by_one], crowding[by_one], total)
        at_one = np.bincount(one[by_other], crowding[by_other], total)
        return np.asarray(at_other + at_one)

    every = np.arange(len(pairs))
    crowd = crowded(every, every)
    alive = np.ones(total, dtype=bool)
    while left > count:
        crowded_most = np.zeros(total, dtype=bool)
        living = np.flatnonzero(alive)
        # The first of those that are equally crowded go first, here and between neighbours.
        order = np.argsort(-crowd[living], kind="stable")
        crowded_most[living[order[: left - count]]] = True
        one_wins = (crowd[one] > crowd[other]) | ((crowd[one] == crowd[other]) & (one < other))
        crowded_most[np.where(one_wins, other, one)] = False
        alive &= ~crowded_most
        left -= int(np.count_nonzero(crowded_most))
        without_one, without_other = crowded_most[one], crowded_most[other]
        crowd -= crowded(np.flatnonzero(without_one), np.flatnonzero(without_other))
        stay = ~(without_one | without_other)
        one, other, crowding = one[stay], other[stay], crowding[stay]
    return np.flatnonzero(alive)


def read_mesh(path: str | Path) -> Mesh:
    """Read a triangle mesh; polygons are cut into triangles, vertices stay as in the file.

    Parameters
    ----------
    path
        An ``.off``, ``.obj``, ``.ply`` or ``.stl`` file (the last two in text or binary form).
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in MESH_SUFFIXES:
        raise FileFormatError(
            f"{path}: cannot read meshes of type {suffix or 'without a suffix'!r}; "
            f"use one of {', '.join(MESH_SUFFIXES)}."
        )
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file.")
    try:
        return _read_obj(path) if suffix == ".obj" else _read_with_trimesh(path)
    except InputError as error:
        raise FileFormatError(f"{path}: {error}") from error


def _read_obj(path: Path) -> Mesh:
    """Vertices and faces of an OBJ file; trimesh would duplicate and reorder them by texture."""
    vertices: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                kind, *words = line.split("#", 1)[0].split() or [""]
                if kind == "v":
                    vertices.append([float(word) for word in words[:3]])
                elif kind == "f":
                    polygon = [int(word.split("/", 1)[0]) for word in words]
                    # Indices count from one, or backwards from the vertex read last.
                    polygon = [i - 1 if i > 0 else len(vertices) + i for i in polygon]
                    faces.extend((polygon[0], b, c) for b, c in pairwise(polygon[1:]))
        return Mesh(np.array(vertices, dtype=np.float64), np.array(faces, dtype=np.int64))
    except (ValueError, OverflowError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise FileFormatError(f"{path}: not a readable OBJ file ({error}).") from error


def _read_with_trimesh(path: Path) -> Mesh:
    import trimesh

    kind = path.suffix.lower().lstrip(".")
    try:
        # trimesh warns about what the checks below turn into errors.
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = trimesh.load_mesh(file, file_type=kind, process=False)
            vertices, faces = np.array(loaded.vertices), np.array(loaded.faces)
    except Exception as error:  # a broken file can raise anything in there
        raise FileFormatError(f"{path}: not a readable {kind.upper()} mesh ({error}).") from error
    return Mesh(vertices, faces)


def _area_vectors(mesh: Mesh) -> Floats:
    """Normals as long as the faces' areas, ``(F, 3)``."""
    a, b, c = np.moveaxis(mesh.corners, 1, 0)
    vector: Floats = 0.5 * np.cross(b - a, c - a)
    return vector

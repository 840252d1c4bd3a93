"""Evaluation: the two numbers of the published tables, frozen, and those a user asks for."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.errors import InputError
from pointmend.geometry.meshes import Mesh, unit_sphere
from pointmend.geometry.triangles import (
    EXACT,
    PairDistance,
    checked_points,
    closest_on_segments,
    faces_to_points,
    points_to_mesh,
)

Floats = NDArray[np.float64]
Variant = Literal["published", "exact"]

EPSILON = 1e-8
"""The constant of the published point-triangle distance; it acts in unit-sphere coordinates."""


@dataclass(frozen=True)
class PointToMesh:
    """Two-way point-to-mesh distance, in squared unit-sphere radii.

    Attributes
    ----------
    points
        Mean over the points of the squared distance to the nearest face.
    faces
        Mean over the faces (not weighted by area) of the squared distance to the nearest point.
    variant
        Which point-triangle distance was used; to be stated with every number.
    """

    points: float
    faces: float
    variant: Variant

    @property
    def total(self) -> float:
        """The number the tables print (times 1e5)."""
        return self.points + self.faces


@dataclass(frozen=True)
class SurfaceError:
    """Distances from points to the true surface, in the units of the input.

    Attributes
    ----------
    rms
        Root of the mean squared distance.
    percentile_95
        The distance that 95 % of the points stay below.
    largest
        The distance of the worst point.
    """

    rms: float
    percentile_95: float
    largest: float


def chamfer(prediction: Floats, clean: Floats) -> float:
    """Chamfer distance (CD) of the published tables, which print it times 1e4.

    Both clouds are normalised by the clean cloud's unit sphere; the sum of the mean squared
    nearest-neighbour distances prediction to clean and clean to prediction.

    Parameters
    ----------
    prediction
        ``(N, 3)`` denoised points.
    clean
        ``(M, 3)`` clean points.
    """
    prediction, clean = checked_points(prediction), checked_points(clean)
    centre, radius = _sphere(clean)
    prediction, clean = (prediction - centre) / radius, (clean - centre) / radius
    forth = cKDTree(clean).query(prediction)[0]
    back = cKDTree(prediction).query(clean)[0]
    return float(np.mean(forth**2) + np.mean(back**2))


def point_to_mesh(prediction: Floats, mesh: Mesh, variant: Variant = "published") -> PointToMesh:
    """Two-way point-to-mesh distance (P2M) of the published tables, which print it times 1e5.

    Points and mesh are normalised by the unit sphere of the mesh's vertices.

    Parameters
    ----------
    prediction
        ``(N, 3)`` denoised points.
    mesh
        The true surface, all vertices and faces as in the file.
    variant
        ``"published"`` for the point-triangle distance the tables were computed with (PyTorch3D
        up to 0.4, see `published_squared`), ``"exact"`` for true geometry.
    """
    if variant not in VARIANTS:
        raise InputError(f"Unknown P2M variant {variant!r}; choose one of {', '.join(VARIANTS)}.")
    centre, radius = _sphere(mesh.vertices)
    points = (checked_points(prediction) - centre) / radius
    mesh = Mesh((mesh.vertices - centre) / radius, mesh.faces)
    distance = VARIANTS[variant]
    forth = points_to_mesh(points, mesh, distance).squared
    back = faces_to_points(mesh, points, distance)
    return PointToMesh(float(forth.mean()), float(back.mean()), variant)


def distances_to_surface(points: Floats, mesh: Mesh) -> Floats:
    """Distances (N,) of points (N, 3) to the true surface, in their units (true geometry)."""
    distances: Floats = np.sqrt(points_to_mesh(checked_points(points), mesh).squared)
    return distances


def surface_error(distances: Floats) -> SurfaceError:
    """How far points lie from the true surface, from their `distances_to_surface` (N,)."""
    return SurfaceError(
        rms=float(np.sqrt(np.mean(distances**2))),
        percentile_95=float(np.percentile(distances, 95)),
        largest=float(distances.max()),
    )


def share_worsened(before: Floats, after: Floats) -> float:
    """Share of points (0 to 1) that moved away from the surface.

    Parameters
    ----------
    before, after
        `distances_to_surface` (N,) of the noisy points and of the result, in the same order.
    """
    if before.shape != after.shape:
        raise InputError(
            f"Noisy input ({len(before)} points) and result ({len(after)} points) "
            "must match point by point."
        )
    return float(np.mean(after > before))


def hausdorff(first: Floats, second: Floats) -> float:
    """Largest nearest-neighbour distance between two clouds, both ways, in input units.

    Parameters
    ----------
    first, second
        ``(N, 3)`` and ``(M, 3)``.
    """
    first, second = checked_points(first), checked_points(second)
    forth = cKDTree(second).query(first)[0]
    back = cKDTree(first).query(second)[0]
    return float(max(forth.max(), back.max()))


def spacing_variation(points: Floats) -> float:
    """Unevenness of spacing: standard deviation over mean of the nearest-neighbour distance.

    About 0.52 for points strewn at random on a surface, 0.1 or less for evenly spread ones.

    Parameters
    ----------
    points
        ``(N, 3)``, N >= 2.
    """
    points = checked_points(points)
    if len(points) < 2:
        raise InputError("Spacing needs at least two points.")
    gap = cKDTree(points).query(points, k=2)[0][:, 1]
    mean = float(gap.mean())
    return float(gap.std() / mean) if mean > 0.0 else 0.0


def published_squared(points: Floats, corners: Floats) -> Floats:
    """Point-triangle distance as the published tables computed it (PyTorch3D up to 0.4).

    With p0 the foot of p on the plane and e1, e2 the edges from the first corner,

        w1 = (e2.e2 e1.p0 - e1.e2 e2.p0) / (e1.e1 e2.e2 - (e1.e2)^2 + 1e-8),  w2 alike,
        w0 = 1 - w1 - w2:

    the plane distance if all three lie in [0, 1] and the normal e1 x e2 is longer than 1e-8, else
    the least of the three edge distances, where an edge of squared length <= 1e-8 counts as its
    second end. The 1e-8 in the denominator lets small triangles reach beyond themselves; that is
    the published number, and the reason to prefer ``"exact"`` outside the tables.

    Parameters
    ----------
    points
        ``(P, 3)`` in unit-sphere coordinates.
    corners
        ``(P, 3, 3)``.

    Returns
    -------
    ``(P,)`` squared distances.
    """
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    e1, e2 = b - a, c - a
    normal = np.cross(e2, e1)
    length = np.sqrt(_dot(normal, normal))
    unit = normal / np.where(length > 0.0, length, 1.0)[:, None]
    height = _dot(a - points, unit)
    foot = points + height[:, None] * unit - a

    d11, d12, d22 = _dot(e1, e1), _dot(e1, e2), _dot(e2, e2)
    f1, f2 = _dot(foot, e1), _dot(foot, e2)
    denominator = d11 * d22 - d12 * d12 + EPSILON
    w1 = (d22 * f1 - d12 * f2) / denominator
    w2 = (d11 * f2 - d12 * f1) / denominator
    w0 = 1.0 - w1 - w2
    inside = length > EPSILON
    for w in (w0, w1, w2):
        inside &= (w >= 0.0) & (w <= 1.0)

    edges = np.minimum(_edge_squared(points, a, b), _edge_squared(points, a, c))
    edges = np.minimum(edges, _edge_squared(points, b, c))
    squared: Floats = np.where(inside, height * height, edges)
    return squared


def published_support(corners: Floats) -> Floats:
    """Triangles that `published_squared` never undercuts.

    Adding 1e-8 to the denominator D = |e1 x e2|^2 shrinks w1 and w2 by D / (D + 1e-8), so the
    points called inside fill the triangle blown up about its first corner by 1 + 1e-8 / D.

    Parameters
    ----------
    corners
        ``(F, 3, 3)`` in unit-sphere coordinates.

    Returns
    -------
    ``(F, 3, 3)``, each containing the triangle itself.
    """
    first = corners[:, :1]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    squared = _dot(normal, normal)
    planar = squared > (0.99 * EPSILON) ** 2
    growth = np.where(planar, 1.0 + EPSILON / np.where(planar, squared, 1.0), 1.0)
    support: Floats = first + (growth * (1.0 + 1e-6))[:, None, None] * (corners - first)
    return support


def _edge_squared(points: Floats, start: Floats, end: Floats) -> Floats:
    edge = end - start
    short = _dot(edge, edge) <= EPSILON
    closest = np.where(short[:, None], end, closest_on_segments(points, start, end))
    return _dot(points - closest, points - closest)


PUBLISHED = PairDistance(squared=published_squared, support=published_support)
VARIANTS: dict[Variant, PairDistance] = {"published": PUBLISHED, "exact": EXACT}


def _dot(a: Floats, b: Floats) -> Floats:
    product: Floats = np.einsum("pi,pi->p", a, b)
    return product


def _sphere(points: Floats) -> tuple[Floats, float]:
    centre, radius = unit_sphere(points)
    if radius == 0.0:
        raise InputError("All points coincide; there is no size to normalise by.")
    return centre, radius

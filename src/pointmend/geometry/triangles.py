"""Geometry: exact distances between points and triangles, in both directions, on KD-trees."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.errors import InputError
from pointmend.geometry.meshes import Mesh

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PAIRS_AT_ONCE = 1 << 18
"""Pairs evaluated in one go: 72 bytes of corners each, so about 20 MB, which stays fast."""

FIRST_GUESSES = 4
"""Faces (or points) tried before the search proper: a tight first bound is worth four pairs."""

WIDTH_OF_PIECES = 4.0
"""Radius of the covering spheres in mean spacings: finer costs more spheres than it saves pairs."""


@dataclass(frozen=True)
class PairDistance:
    """A notion of distance between one point and one triangle.

    Attributes
    ----------
    squared
        ``(P, 3)`` points and ``(P, 3, 3)`` triangle corners to ``(P,)`` squared distances.
    support
        ``(F, 3, 3)`` corners to ``(F, 3, 3)`` corners of triangles such that ``squared`` is never
        below the true squared distance to them. The search prunes by these, and is exact for any
        ``squared`` that keeps this promise.
    """

    squared: Callable[[Floats, Floats], Floats]
    support: Callable[[Floats], Floats]


class Projection(NamedTuple):
    """Where points fall on a mesh.

    Attributes
    ----------
    squared
        ``(N,)`` squared distances to the nearest face.
    face
        ``(N,)`` index of that face.
    closest
        ``(N, 3)`` the point of that face which is nearest in true geometry.
    """

    squared: Floats
    face: Ints
    closest: Floats


def closest_on_segments(points: Floats, start: Floats, end: Floats) -> Floats:
    """Nearest points of segments, row by row.

    Parameters
    ----------
    points, start, end
        ``(P, 3)`` each. A segment may have no length.

    Returns
    -------
    ``(P, 3)`` points of the segments.
    """
    edge = end - start
    length = _dot(edge, edge)
    along = _dot(points - start, edge) / np.where(length > 0.0, length, 1.0)
    closest: Floats = start + np.clip(along, 0.0, 1.0)[:, None] * edge
    return closest


def closest_on_triangles(points: Floats, corners: Floats) -> Floats:
    """Nearest points of triangles, row by row.

    Every candidate is a point of the triangle (the foot of the perpendicular if it falls inside,
    and the nearest point of each edge), and the nearest candidate wins. A sliver whose plane is
    lost in rounding is thereby still served by its edges.

    Parameters
    ----------
    points
        ``(P, 3)``.
    corners
        ``(P, 3, 3)``: row, corner, coordinate. Triangles may be degenerate.

    Returns
    -------
    ``(P, 3)`` points of the triangles.
    """
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    closest = closest_on_segments(points, a, b)
    nearest = _squared_norm(points - closest)
    for start, end in ((b, c), (c, a)):
        candidate = closest_on_segments(points, start, end)
        _take_nearer(closest, nearest, candidate, _squared_norm(points - candidate))

    inside, foot = _foot_of_perpendicular(points, corners)
    squared = np.where(inside, _squared_norm(points - foot), np.inf)
    _take_nearer(closest, nearest, foot, squared)
    return closest


def squared_to_triangles(points: Floats, corners: Floats) -> Floats:
    """True squared distances to triangles, row by row: ``(P, 3), (P, 3, 3) -> (P,)``."""
    return _squared_norm(points - closest_on_triangles(points, corners))


def _itself(corners: Floats) -> Floats:
    return corners


EXACT = PairDistance(squared=squared_to_triangles, support=_itself)
"""True geometry."""


def points_to_mesh(points: Floats, mesh: Mesh, distance: PairDistance = EXACT) -> Projection:
    """Nearest face of a mesh for every point.

    Exact: faces are covered by spheres, an upper bound comes from the faces tried first, and every
    face with a sphere within that bound is evaluated.

    Parameters
    ----------
    points
        ``(N, 3)`` float64.
    mesh
        The mesh; degenerate faces are allowed.
    distance
        The notion of distance, true geometry by default.

    Returns
    -------
    Squared distances ``(N,)``, face indices ``(N,)``, closest points ``(N, 3)``.
    """
    points = checked_points(points)
    corners = mesh.corners
    count = len(corners)

    squared, face = np.full(len(points), np.inf), np.zeros(len(points), dtype=np.int64)

    def try_faces(guess: Ints) -> Floats:
        """Try some faces (N, g) of each point; returns how far nearer ones can be (N,)."""
        row = np.arange(len(points)).repeat(guess.shape[1])
        tried = _evaluate(distance, points, corners, row, guess.ravel()).reshape(guess.shape)
        best = tried.argmin(axis=1)
        least = tried[np.arange(len(points)), best]
        face[:] = np.where(least < squared, guess[np.arange(len(points)), best], face)
        squared[:] = np.minimum(least, squared)
        return np.asarray(np.sqrt(squared) * (1.0 + 1e-9) + _rounding(points, corners))

    tree = cKDTree(corners.mean(axis=1))
    reach = try_faces(_nearest(tree, points, min(FIRST_GUESSES, count)))
    support = distance.support(corners)
    pieces = _cover(
        support,
        limit=max(
            float(np.median(reach)), WIDTH_OF_PIECES * _spacing(corners, count + len(points))
        ),
        budget=4 * (count + len(points)),
        reach=np.full(count, reach.max()),
        tree=cKDTree(points),
    )
    # Beside a face much larger than its neighbours the centres of these are nearer than its own;
    # the pieces know better, and a tighter bound leaves far fewer pairs.
    nearest = _nearest(cKDTree(pieces.centre), points, min(FIRST_GUESSES, len(pieces.centre)))
    reach = try_faces(pieces.parent[nearest])
    for group in pieces.by_size():
        widest = group.radius.max()
        tree = cKDTree(group.centre)
        for point, piece in _within(tree, points, reach + widest):
            gap = np.sqrt(_squared_norm(points[point] - group.centre[piece])) - group.radius[piece]
            near = gap <= reach[point]
            point, other = _distinct(point[near], group.parent[piece[near]], count)
            if len(point) == 0:
                continue
            value = _evaluate(distance, points, corners, point, other)
            start, least, which = _least_per_run(point, value)
            owner = point[start]
            better = least < squared[owner]
            squared[owner[better]] = least[better]
            face[owner[better]] = other[which[better]]
    return Projection(squared, face, closest_on_triangles(points, corners[face]))


def faces_to_points(mesh: Mesh, points: Floats, distance: PairDistance = EXACT) -> Floats:
    """Squared distance from every face of a mesh to the nearest of some points.

    Parameters
    ----------
    mesh
        The mesh, F faces; degenerate faces are allowed.
    points
        ``(N, 3)`` float64.
    distance
        The notion of distance, true geometry by default.

    Returns
    -------
    ``(F,)`` squared distances.
    """
    points = checked_points(points)
    corners = mesh.corners
    count = len(corners)
    tree = cKDTree(points)

    guess = _nearest(tree, corners.mean(axis=1), min(FIRST_GUESSES, len(points)))
    row = np.arange(count).repeat(guess.shape[1])
    tried = _evaluate(distance, points, corners, guess.ravel(), row).reshape(guess.shape)
    squared: Floats = tried.min(axis=1)

    reach = np.sqrt(squared) * (1.0 + 1e-9) + _rounding(points, corners)
    pieces = _cover(
        distance.support(corners),
        limit=max(float(np.median(reach)), WIDTH_OF_PIECES * _spacing(corners, len(points))),
        budget=4 * (count + len(points)),
        reach=reach,
        tree=tree,
    )
    for piece, point in _within(tree, pieces.centre, pieces.radius + reach[pieces.parent]):
        owner, other = _distinct(pieces.parent[piece], point, len(points))
        if len(owner) == 0:
            continue
        value = _evaluate(distance, points, corners, other, owner)
        start, least, _ = _least_per_run(owner, value)
        squared[owner[start]] = np.minimum(squared[owner[start]], least)
    return squared


@dataclass(frozen=True)
class _Pieces:
    """Spheres that cover triangles: ``centre (P, 3)``, ``radius (P,)``, ``parent (P,)``."""

    centre: Floats
    radius: Floats
    parent: Ints

    def by_size(self) -> Iterator["_Pieces"]:
        """Groups in which no sphere is more than four times the median size of the group.

        One wide sphere would otherwise widen the search for all of them.
        """
        left = np.ones(len(self.radius), dtype=bool)
        while left.any():
            limit = max(4.0 * float(np.median(self.radius[left])), np.finfo(np.float64).tiny)
            group = left & (self.radius <= limit)
            left &= ~group
            yield _Pieces(self.centre[group], self.radius[group], self.parent[group])


def _cover(corners: Floats, limit: float, budget: int, reach: Floats, tree: cKDTree) -> _Pieces:
    """Cover triangles by spheres of radius ``limit``, or wider ones where ``budget`` asks for it.

    A piece that has no point of ``tree`` within ``reach`` of its parent is dropped, so even a
    triangle that is vastly larger than the cloud ends up as a handful of pieces.
    """
    parent = np.arange(len(corners))
    # Corners far away carry a coarse last bit; the spheres grow by it.
    blur = 1e-14 * np.abs(corners).max(axis=(1, 2))
    finished: list[tuple[Floats, Floats, Ints]] = []
    total = 0
    while len(parent):
        centre = corners.mean(axis=1)
        offset = corners - centre[:, None]
        radius = np.sqrt(np.einsum("pci,pci->pc", offset, offset).max(axis=1)) + blur[parent]
        if total + len(parent) > budget:
            limit *= 2.0
        done = radius <= limit
        finished.append((centre[done], radius[done], parent[done]))
        total += int(done.sum())

        corners, parent, centre, radius = (x[~done] for x in (corners, parent, centre, radius))
        if len(parent):
            gap = tree.query(centre)[0] - radius
            wanted = gap <= reach[parent]
            corners, parent = _halves(corners[wanted]), parent[wanted].repeat(2)
    centres, radii, parents = (np.concatenate(column) for column in zip(*finished, strict=True))
    order = np.argsort(parents, kind="stable")
    return _Pieces(centres[order], radii[order], parents[order])


def _halves(corners: Floats) -> Floats:
    """Cut triangles across their longest edge: ``(P, 3, 3) -> (2P, 3, 3)``."""
    edge = np.roll(corners, -1, axis=1) - corners
    longest = np.einsum("pci,pci->pc", edge, edge).argmax(axis=1)
    turn = (longest[:, None] + np.arange(3)) % 3
    a, b, c = np.moveaxis(np.take_along_axis(corners, turn[:, :, None], axis=1), 1, 0)
    middle = 0.5 * (a + b)
    halves = np.stack((np.stack((a, middle, c), axis=1), np.stack((middle, b, c), axis=1)), axis=1)
    flat: Floats = halves.reshape(-1, 3, 3)
    return flat


def _within(tree: cKDTree, queries: Floats, radius: Floats) -> Iterator[tuple[Ints, Ints]]:
    """All (query, tree point) pairs within each query's radius, in chunks, sorted by query."""
    counts = tree.query_ball_point(queries, radius, return_length=True).astype(np.int64)
    filled = np.cumsum(counts)
    begin = 0
    while begin < len(queries):
        before = filled[begin - 1] if begin else 0
        end = max(int(np.searchsorted(filled, before + PAIRS_AT_ONCE, side="right")), begin + 1)
        size = int(filled[end - 1] - before)
        if size:
            found = tree.query_ball_point(queries[begin:end], radius[begin:end])
            flat = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=size)
            yield np.arange(begin, end).repeat(counts[begin:end]), flat
        begin = end


def _distinct(first: Ints, second: Ints, base: int) -> tuple[Ints, Ints]:
    """Pairs without repetition, sorted by the first member."""
    key = np.sort(first * base + second)  # np.unique hashes first, which takes twice as long
    key = key[np.concatenate(([True], key[1:] != key[:-1]))] if len(key) else key
    return key // base, key % base


def _least_per_run(owner: Ints, value: Floats) -> tuple[Ints, Floats, Ints]:
    """Where each run of equal owners starts, its least value, and the position of that value."""
    start = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    least = np.minimum.reduceat(value, start)
    length = np.diff(np.append(start, len(owner)))
    hits = np.flatnonzero(value == least.repeat(length))
    first = hits[np.searchsorted(hits, start)]
    return start, least, first


def _evaluate(
    distance: PairDistance, points: Floats, corners: Floats, point: Ints, face: Ints
) -> Floats:
    value = np.empty(len(point))
    for begin in range(0, len(point), PAIRS_AT_ONCE):
        rows = slice(begin, begin + PAIRS_AT_ONCE)
        value[rows] = distance.squared(points[point[rows]], corners[face[rows]])
    return value


def _foot_of_perpendicular(points: Floats, corners: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Whether the foot on each triangle's plane lies inside it, and the foot."""
    a = corners[:, 0]
    ab, ac, ap = corners[:, 1] - a, corners[:, 2] - a, points - a
    normal = np.cross(ab, ac)
    area = _dot(normal, normal)
    flat = area <= 0.0
    scale = 1.0 / np.where(flat, 1.0, area)
    along_ab = _dot(np.cross(ap, ac), normal) * scale
    along_ac = _dot(np.cross(ab, ap), normal) * scale
    inside = (along_ab >= 0.0) & (along_ac >= 0.0) & (along_ab + along_ac <= 1.0) & ~flat
    return inside, a + along_ab[:, None] * ab + along_ac[:, None] * ac


def _take_nearer(closest: Floats, nearest: Floats, candidate: Floats, squared: Floats) -> None:
    nearer = squared < nearest
    closest[nearer] = candidate[nearer]
    nearest[nearer] = squared[nearer]


def _nearest(tree: cKDTree, queries: Floats, k: int) -> Ints:
    found: Ints = tree.query(queries, k=k)[1].astype(np.int64).reshape(len(queries), k)
    return found


def _spacing(corners: Floats, count: int) -> float:
    """Side of the square each of ``count`` pieces would get of the whole area."""
    area = 0.5 * np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    return float(np.sqrt(area.sum() / count))


def _rounding(points: Floats, corners: Floats) -> float:
    return 1e-14 * float(max(np.abs(points).max(), np.abs(corners).max()))


def _dot(a: Floats, b: Floats) -> Floats:
    product: Floats = np.einsum("pi,pi->p", a, b)
    return product


def _squared_norm(a: Floats) -> Floats:
    return _dot(a, a)


def checked_points(points: Floats) -> Floats:
    """Points as a contiguous ``(N, 3)`` array; refuses other shapes, none, and infinite ones."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) == 0:
        raise InputError(f"Points must be an N x 3 array with N >= 1, not of shape {points.shape}.")
    if not np.isfinite(points).all():
        raise InputError("Some points are not finite; remove them first.")
    return points

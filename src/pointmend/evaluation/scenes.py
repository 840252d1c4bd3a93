"""Evaluation: bodies of known distance, sampled evenly or as a laser scanner would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.density import surroundings

Floats = NDArray[np.float64]
Sampling = Literal["even", "lidar"]
SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)


class Body(Protocol):
    """A surface that can be sampled, hit by rays, and measured against."""

    def sample(self, spacing: float, rng: np.random.Generator) -> Floats:
        """Points (N, 3) about `spacing` apart, evenly but not on a grid."""

    def hit(self, origin: Floats, directions: Floats) -> Floats:
        """How far rays (R, 3) of length 1 go from `origin` (3,): (R,), inf where they miss."""

    def distance(self, points: Floats) -> Floats:
        """Distance of points (N, 3) to the surface: (N,)."""


@dataclass(frozen=True)
class Plane:
    """The square |x|, |y| <= half at z = 0; distances are to the whole plane."""

    half: float

    def sample(self, spacing: float, rng: np.random.Generator) -> Floats:
        """A jittered grid."""
        x, y = _jittered(-self.half, self.half, -self.half, self.half, spacing, rng)
        return np.stack([x, y, np.zeros_like(x)], axis=1)

    def hit(self, origin: Floats, directions: Floats) -> Floats:
        """Where z vanishes, inside the square."""
        with np.errstate(divide="ignore", invalid="ignore"):
            way = -origin[2] / directions[:, 2]
            at = origin + way[:, None] * directions
            inside = (way > 0.0) & (np.abs(at[:, :2]) <= self.half).all(axis=1)
        return np.where(inside, way, np.inf)

    def distance(self, points: Floats) -> Floats:
        """|z|."""
        return np.abs(points[:, 2])


@dataclass(frozen=True)
class Sphere:
    """A sphere around the origin."""

    radius: float

    def sample(self, spacing: float, rng: np.random.Generator) -> Floats:
        """A Fibonacci lattice, shaken by a third of the spacing."""
        count = round(4.0 * np.pi * self.radius**2 / spacing**2)
        z = 1.0 - (2.0 * np.arange(count) + 1.0) / count
        turn = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(count)
        across = np.sqrt(1.0 - z**2)
        points = self.radius * np.stack([across * np.cos(turn), across * np.sin(turn), z], axis=1)
        points += rng.uniform(-spacing / 3.0, spacing / 3.0, points.shape)
        result: Floats = self.radius * points / np.linalg.norm(points, axis=1, keepdims=True)
        return result

    def hit(self, origin: Floats, directions: Floats) -> Floats:
        """The nearer root of |origin + t d| = radius."""
        along = directions @ origin
        root = along**2 - (origin @ origin - self.radius**2)
        way = -along - np.sqrt(np.maximum(root, 0.0))
        return np.where((root > 0.0) & (way > 0.0), way, np.inf)

    def distance(self, points: Floats) -> Floats:
        """| |x| - radius |."""
        return np.asarray(np.abs(np.linalg.norm(points, axis=1) - self.radius))


@dataclass(frozen=True)
class Box:
    """A box around the origin with half sizes (3,); a flat one is a thin plate."""

    half: tuple[float, float, float]

    def sample(self, spacing: float, rng: np.random.Generator) -> Floats:
        """A jittered grid on each of the six faces."""
        faces = []
        for axis in range(3):
            u, v = [a for a in range(3) if a != axis]
            for side in (-1.0, 1.0):
                limits = (-self.half[u], self.half[u], -self.half[v], self.half[v])
                x, y = _jittered(*limits, spacing, rng)
                face = np.empty((len(x), 3))
                face[:, axis], face[:, u], face[:, v] = side * self.half[axis], x, y
                faces.append(face)
        return np.concatenate(faces)

    def hit(self, origin: Floats, directions: Floats) -> Floats:
        """Where a ray has entered all three slabs and left none."""
        half = np.array(self.half)
        with np.errstate(divide="ignore"):
            near, far = (-half - origin) / directions, (half - origin) / directions
        enter = np.minimum(near, far).max(axis=1)
        leave = np.maximum(near, far).min(axis=1)
        return np.where((enter > 0.0) & (enter <= leave), enter, np.inf)

    def distance(self, points: Floats) -> Floats:
        """Outside to the nearest face, edge or corner; inside to the nearest face."""
        beyond = np.abs(points) - np.array(self.half)
        outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=1)
        return np.asarray(outside - np.minimum(beyond.max(axis=1), 0.0))


@dataclass(frozen=True)
class Scene:
    """
    Clean points on a body, and how noise falls on them.

    Attributes
    ----------
    name : of the body and its sampling.
    body : the surface.
    clean : (N, 3).
    rays : (N, 3) unit directions noise goes along, or None for noise in all directions.
    """

    name: str
    body: Body
    clean: Floats
    rays: Floats | None = None

    @property
    def spacing(self) -> float:
        """
        Median local spacing: the side of the square a point has for itself.

        On the lines of a scanner that is more than the distance to the nearest neighbour.
        """
        return float(np.median(surroundings(self.clean).spacing))

    def noisy(self, ratio: float, rng: np.random.Generator) -> Floats:
        """The points with Gaussian noise of `ratio` times their spacing: (N, 3)."""
        scale = ratio * self.spacing
        if self.rays is None:
            return self.clean + scale * rng.standard_normal(self.clean.shape)
        return self.clean + scale * rng.standard_normal((len(self.clean), 1)) * self.rays

    def rms(self, points: Floats) -> float:
        """Root mean square distance of points (N, 3) to the surface."""
        return float(np.sqrt(np.mean(self.body.distance(points) ** 2)))


@dataclass(frozen=True)
class Scanner:
    """
    A spinning laser scanner: rings of equal elevation, points close together along each.

    Attributes
    ----------
    origin : where it stands.
    rings, turns : how many elevations between `lowest` and `highest`, and azimuths in a full turn.
    lowest, highest : degrees.
    """

    origin: tuple[float, float, float]
    rings: int = 64
    turns: int = 1800
    lowest: float = -25.0
    highest: float = 15.0

    def scan(self, body: Body) -> tuple[Floats, Floats]:
        """Clean points (N, 3) where rays meet a body, and the rays (N, 3)."""
        elevation = np.radians(np.linspace(self.lowest, self.highest, self.rings))[:, None]
        azimuth = 2.0 * np.pi * np.arange(self.turns)[None, :] / self.turns
        rays = np.stack(
            np.broadcast_arrays(
                np.cos(elevation) * np.cos(azimuth),
                np.cos(elevation) * np.sin(azimuth),
                np.sin(elevation),
            ),
            axis=2,
        ).reshape(-1, 3)
        origin = np.array(self.origin)
        ranges = body.hit(origin, rays)
        seen = np.isfinite(ranges)
        return origin + ranges[seen, None] * rays[seen], rays[seen]


def _jittered(
    left: float, right: float, low: float, high: float, spacing: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """A grid of cells of about `spacing`, one point somewhere in the middle of each: (N,), (N,)."""
    columns = max(1, round((right - left) / spacing))
    rows = max(1, round((high - low) / spacing))
    x, y = np.meshgrid(np.arange(columns) + 0.5, np.arange(rows) + 0.5)
    x = x + rng.uniform(-0.35, 0.35, x.shape)
    y = y + rng.uniform(-0.35, 0.35, y.shape)
    across, up = (right - left) / columns, (high - low) / rows
    return left + across * x.reshape(-1), low + up * y.reshape(-1)


# The bodies of the do-no-harm table, in metres: what stands in a street.
BODIES: dict[str, Body] = {
    "plane": Plane(4.0),
    "sphere": Sphere(2.0),
    "edge": Box((1.5, 1.5, 1.5)),
    "plate": Box((2.0, 2.0, 0.25)),
}
SPACING = 0.05
# What a scanner sees of them; of the ground all around it, since its rings begin metres away.
SEEN: dict[str, tuple[Body, Scanner]] = {
    "plane": (Plane(8.0), Scanner((0.0, 0.0, 1.8), turns=900)),
    "sphere": (BODIES["sphere"], Scanner((7.0, 0.0, 1.0))),
    "edge": (BODIES["edge"], Scanner((5.0, 4.0, 1.0))),
    "plate": (BODIES["plate"], Scanner((5.0, 1.0, 2.0), lowest=-35.0, highest=-5.0)),
}


def scene(
    name: str, sampling: Sampling, rng: np.random.Generator, spacing: float = SPACING
) -> Scene:
    """One of the bodies, sampled evenly at a spacing, or seen by a scanner in the street."""
    if sampling == "even":
        body = BODIES[name]
        return Scene(f"{name}, even", body, body.sample(spacing, rng))
    body, scanner = SEEN[name]
    clean, rays = scanner.scan(body)
    return Scene(f"{name}, lidar", body, clean, rays)

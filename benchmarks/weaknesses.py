"""
Where denoising is hard: edges, thin plates, fine relief, sparse clouds, strong noise.

    python -m benchmarks.weaknesses

Generated surfaces of known distance, each made harder from left to right. Prints, as Markdown, the
RMS distance to the surface after denoising over that before: of pointmend, and beside it of jet and
bilateral smoothing, which are told the noise. Noise in percent is a share of the cloud's radius; a
spacing is the side of the square a point has for itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pointmend.evaluation.scenes import Box, Plane, Sphere
from pointmend.geometry.meshes import unit_sphere
from pointmend.methods.method import Method, Task
from pointmend.methods.registry import contestants

METHODS = ("pointmend", "bilateral", "jet")
POINTS = 10_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Waves:
    """z = height sin(k x) sin(k y) over a square: relief whose wavelength is `length`."""

    ground: Plane
    length: float
    height: float

    def sample(self, spacing: float, rng: np.random.Generator) -> Floats:
        """A jittered grid, lifted."""
        points = self.ground.sample(spacing, rng)
        points[:, 2] = self.lift(points)[0]
        return points

    def distance(self, points: Floats) -> Floats:
        """To the tangent plane below or above: exact to first order."""
        lift, slope = self.lift(points)
        return np.asarray(np.abs(points[:, 2] - lift) / np.sqrt(1.0 + slope**2))

    def lift(self, points: Floats) -> tuple[Floats, Floats]:
        """Height and slope (N,) below points (N, 3)."""
        k = 2.0 * np.pi / self.length
        x, y = k * points[:, 0], k * points[:, 1]
        slope = k * self.height * np.hypot(np.cos(x) * np.sin(y), np.sin(x) * np.cos(y))
        return self.height * np.sin(x) * np.sin(y), slope


@dataclass(frozen=True)
class Case:
    """
    One column of a table.

    Attributes
    ----------
    title : its heading.
    distance : of points (N, 3) to the surface: (N,).
    clean : (N, 3) points on it.
    sigma : the noise.
    counts : (N,) the points that count; all when None.
    """

    title: str
    distance: Callable[[Floats], Floats]
    clean: Floats
    sigma: float
    counts: NDArray[np.bool_] | None = None

    def left(self, method: Method) -> float:
        """RMS distance of the points that count, after over before."""
        rng = np.random.default_rng(1)
        noisy = self.clean + self.sigma * rng.standard_normal(self.clean.shape)
        _, radius = unit_sphere(noisy)
        denoised = method(Task(noisy, level=self.sigma / radius))
        counts = slice(None) if self.counts is None else self.counts
        before, after = (np.mean(self.distance(x[counts]) ** 2) for x in (noisy, denoised))
        return float(np.sqrt(after / before))


def cases() -> Iterator[tuple[str, list[Case]]]:
    """All tables, each with its columns from easy to hard."""
    rng = np.random.default_rng(0)
    cube = Box((1.0, 1.0, 1.0))
    spacing = float(np.sqrt(24.0 / POINTS))
    clean = cube.sample(spacing, rng)
    at_edge = np.sum(1.0 - np.abs(clean) < 2.0 * spacing, axis=1) >= 2
    yield (
        "edges of a cube, the strip two spacings wide, noise",
        [
            Case(f"{level:.1%}", cube.distance, clean, level * 3**0.5, at_edge)
            for level in (0.005, 0.01, 0.02, 0.03)
        ],
    )
    yield "a thin plate, noise 2 %, its thickness over the noise", list(_plates(rng))
    yield "relief, noise half a spacing, its wavelength in spacings", list(_reliefs(rng))
    ball = Sphere(1.0)
    yield (
        "a sphere of few points, noise 2 %, points",
        [
            Case(f"{count:,}", ball.distance, ball.sample((4 * np.pi / count) ** 0.5, rng), 0.02)
            for count in (5_000, 2_000, 1_000, 500, 200)
        ],
    )
    for name, body, area in (("a sphere", ball, 4.0 * np.pi), ("a cube", cube, 24.0)):
        clean = body.sample(float(np.sqrt(area / POINTS)), rng)
        size = float(np.linalg.norm(clean, axis=1).max())
        yield (
            f"{name}, strong noise",
            [
                Case(f"{level:.0%}", body.distance, clean, level * size)
                for level in (0.03, 0.05, 0.07, 0.1)
            ],
        )


def _plates(rng: np.random.Generator) -> Iterator[Case]:
    """Plates whose two sides come ever closer, in terms of the noise."""
    sigma = 0.02 * 2**0.5
    for ratio in (8.0, 6.0, 4.0, 3.0, 2.0):
        plate = Box((1.0, 1.0, 0.5 * ratio * sigma))
        clean = plate.sample(float(np.sqrt(8.0 / POINTS)), rng)
        yield Case(f"{ratio:g}", plate.distance, clean, sigma)


def _reliefs(rng: np.random.Generator) -> Iterator[Case]:
    """Waves a tenth as high as long, ever shorter; the border does not count."""
    spacing = 2.0 / float(np.sqrt(POINTS))
    for length in (32.0, 16.0, 10.0, 7.0, 5.0):
        waves = Waves(Plane(1.0), length * spacing, 0.1 * length * spacing)
        clean = waves.sample(spacing, rng)
        inner = (np.abs(clean[:, :2]) < 0.9).all(axis=1)
        yield Case(f"{length:g}", waves.distance, clean, 0.5 * spacing, inner)


def print_table(title: str, columns: Sequence[Case], methods: Sequence[Method]) -> None:
    """One table: a row per method."""
    print(f"| {title} |", " | ".join(case.title for case in columns), "|")
    print("|---|" + "---|" * len(columns))
    for method in methods:
        cells = [f"{case.left(method):.2f}" for case in columns]
        print(f"| {method.name} |", " | ".join(cells), "|", flush=True)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="default")
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    runs = contestants(METHODS, model=options.model, steps=options.steps)
    for title, columns in cases():
        print_table(title, columns, [run.method for run in runs])


if __name__ == "__main__":
    main()

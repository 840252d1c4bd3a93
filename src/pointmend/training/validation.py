"""Training: the full sampler on shapes never trained on, judged by the tables' metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointmend.denoising.calibration import Calibration, fit_calibration
from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.first_look import trimmed_rms
from pointmend.denoising.noise_fit import FITTED_FROM, fit_noise, signs_of
from pointmend.evaluation.metrics import chamfer, point_to_mesh
from pointmend.evaluation.noise import Pattern, add_noise
from pointmend.geometry.frames import frame_cloud
from pointmend.geometry.meshes import Mesh, face_normals, unit_sphere
from pointmend.geometry.triangles import points_to_mesh

from .library import Source, build_shape
from .processes import in_processes

Float64 = NDArray[np.float64]

# Noise levels of the tables, and the finer ones the noise estimator is calibrated at.
LEVELS = (0.01, 0.02, 0.03)
CALIBRATION_LEVELS = (0.0025, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03)
CALIBRATED_FROM = 0.85

# Noise of other kinds takes part in the calibration, too, with less weight: along a scanner's rays
# (so many times the level, since much of it goes along the surface), and other distributions.
OTHER_PATTERNS: tuple[Pattern, ...] = ("laplace", "uniform", "anisotropic")
OTHER_WEIGHT = 0.7
ALONG_RAYS = 1.4
SCANNER_AT = 4.0
LEAST_FACING = 0.15
LEAST_SEEN = 1000


@dataclass(frozen=True)
class ValidationShape:
    """An even cloud (N, 3) in the unit sphere, and its mesh when there is one."""

    name: str
    mesh: Mesh | None
    clean: Float64

    def noisy(self, level: float) -> Float64:
        """The cloud with Gaussian noise of `level` times its radius, always the same."""
        return add_noise(self.clean, "gaussian", level, self._rng(level))

    def patterned(self, pattern: Pattern, level: float) -> Float64:
        """The cloud with noise of another pattern (`add_noise`), always the same."""
        return add_noise(self.clean, pattern, level, self._rng(level))

    def scanned(self, level: float) -> tuple[Float64, float] | None:
        """
        What a scanner sees of it from somewhere: points (M, 3) with noise along its rays.

        Returns
        -------
        The points, and how wide the noise is across the surface; None without a mesh, or where too
        little of it is seen.
        """
        if self._normals is None:
            return None
        rng = self._rng(level)
        origin = rng.standard_normal(3)
        rays = self.clean - SCANNER_AT * origin / np.linalg.norm(origin)
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        facing = -np.einsum("ij,ij->i", rays, self._normals)
        seen = facing > LEAST_FACING
        if np.count_nonzero(seen) < LEAST_SEEN:
            return None
        way = ALONG_RAYS * level * rng.standard_normal(np.count_nonzero(seen))
        noisy = self.clean[seen] + way[:, None] * rays[seen]
        return noisy, float(np.sqrt(np.mean((way * facing[seen]) ** 2)))

    @cached_property
    def _normals(self) -> Float64 | None:
        """Of the mesh at the points (N, 3)."""
        if self.mesh is None:
            return None
        return face_normals(self.mesh)[points_to_mesh(self.clean, self.mesh).face]

    def _rng(self, level: float) -> np.random.Generator:
        return np.random.default_rng([len(self.clean), round(1e5 * level)])


@dataclass(frozen=True)
class Score:
    """One cell: CD x 1e4 and both halves of P2M x 1e5 (published variant)."""

    shape: str
    points: int
    level: float
    cd: float
    to_surface: float
    to_points: float
    sigma_ratio: float

    @property
    def p2m(self) -> float:
        """Two-way P2M x 1e5."""
        return self.to_surface + self.to_points


def validation_shapes(sources: Sequence[Source], points: int, cache: Path) -> list[ValidationShape]:
    """Clouds of `points` points of every mesh; a source without mesh lends its first cloud."""
    shapes = []
    for source in sources:
        mesh = None
        if source.mesh is not None:
            centre, radius = unit_sphere(source.mesh.vertices)
            mesh = Mesh((source.mesh.vertices - centre) / radius, source.mesh.faces)
        clean = np.asarray(build_shape(source, cache, (points,)).clouds[0])
        shapes.append(ValidationShape(source.name, mesh, clean))
    return shapes


def validate(
    denoiser: Denoiser,
    shapes: Sequence[ValidationShape],
    levels: Sequence[float] = LEVELS,
    steps: int = 5,
    after: Callable[[Score], None] = lambda score: None,
    processes: int = 1,
    *,
    known: bool = False,
    spread: bool = False,
) -> list[Score]:
    """
    Denoise every shape that has a mesh at every level and measure the result.

    Parameters
    ----------
    known : tell the denoiser how noisy its input is, instead of letting it find out.
    spread : let points slide along the surface.
    """
    cells = [(s, s.mesh, level) for level in levels for s in shapes if s.mesh is not None]
    scores = []
    score_cell = partial(_score, denoiser, steps, known, spread)
    for score in in_processes(score_cell, cells, processes):
        after(score)
        scores.append(score)
    return scores


def _score(
    denoiser: Denoiser,
    steps: int,
    known: bool,
    spread: bool,
    cell: tuple[ValidationShape, Mesh, float],
) -> Score:
    """One cell: a shape denoised at one level and measured on its mesh."""
    shape, mesh, level = cell
    noisy = shape.noisy(level)
    true_sigma = float((noisy - shape.clean).std())
    sigma = true_sigma if known else None
    result = denoiser.denoise(noisy, steps=steps, sigma=sigma, spread=spread)
    surface = point_to_mesh(result.points, mesh)
    return Score(
        shape=shape.name,
        points=len(noisy),
        level=level,
        cd=1e4 * chamfer(result.points, shape.clean),
        to_surface=1e5 * surface.points,
        to_points=1e5 * surface.faces,
        sigma_ratio=result.sigma / true_sigma,
    )


def summarise(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Means over the shapes, one entry per resolution and level."""
    cells = sorted({(score.points, score.level) for score in scores})
    rows = []
    for points, level in cells:
        cell = [asdict(s) for s in scores if (s.points, s.level) == (points, level)]
        keys = ("cd", "to_surface", "to_points", "sigma_ratio")
        means = {key: float(np.mean([entry[key] for entry in cell])) for key in keys}
        means["p2m"] = means["to_surface"] + means["to_points"]
        rows.append({"points": points, "level": level, "shapes": len(cell), **means})
    return rows


def calibrate(
    denoiser: Denoiser,
    shapes: Sequence[ValidationShape],
    levels: Sequence[float] = CALIBRATION_LEVELS,
    more: Sequence[ValidationShape] = (),
    walls: Sequence[ValidationShape] = (),
    processes: int = 1,
) -> Calibration:
    """
    Look at known noise; fit what leads from scores, and from all that is seen, to sigma.

    Parameters
    ----------
    shapes : looked at under Gaussian noise of all levels.
    more : looked at under every second level, for the fit alone, which has much to tell apart:
        edges, relief.
    walls : looked at under all levels, for the fit alone: noise is hardest to tell where sides
        come in pairs.
    processes : how many look at once.
    """
    half = [(shape, levels[number % 2 :: 2]) for number, shape in enumerate(more)]
    looked_at = [*((s, levels) for s in shapes), *half, *((s, levels) for s in walls)]
    tasks = [(s, wide, max(levels), n) for n, (s, wide) in enumerate(looked_at)]
    readings = list(in_processes(partial(_read_shape, denoiser), tasks, processes))
    known = [reading for gaussian, _ in readings[: len(shapes)] for reading in gaussian]
    calibration = fit_calibration(
        [r.rms for r in known], [r.spacing for r in known], [r.sigma for r in known]
    )
    weighed = [(r, 1.0) for gaussian, _ in readings for r in gaussian]
    weighed += [(r, OTHER_WEIGHT) for _, others in readings for r in others]
    # From somewhat below where it counts, so that what is fitted does not end there.
    least = CALIBRATED_FROM * FITTED_FROM
    fitted = [(r.signs, r.sigma, w) for r, w in weighed if r.sigma > least * r.spacing]
    if not fitted or any(signs is None for signs, _, _ in fitted):
        return calibration
    return replace(calibration, fit=fit_noise(*zip(*fitted)))


def _read_shape(
    denoiser: Denoiser, task: tuple[ValidationShape, Sequence[float], float, int]
) -> tuple[list[_Reading], list[_Reading]]:
    """
    Look at a shape: under Gaussian noise of some levels, and under noise of other kinds.

    Parameters
    ----------
    task : the shape, the levels, the most noise of other kinds, and the number of the shape, which
        decides what of that it gets.
    """
    shape, levels, most, number = task
    gaussian = [_read(denoiser, *cloud) for cloud in _gaussian(shape, levels)]
    return gaussian, [_read(denoiser, *cloud) for cloud in _other_noise(shape, most, number)]


def _gaussian(shape: ValidationShape, levels: Sequence[float]) -> Iterator[tuple[Float64, float]]:
    """A shape under Gaussian noise of some levels, and that noise."""
    for level in levels:
        noisy = shape.noisy(level)
        yield noisy, float((noisy - shape.clean).std())


def _other_noise(
    shape: ValidationShape, most: float, number: int
) -> Iterator[tuple[Float64, float]]:
    """A shape once as a scanner sees it and once under another pattern, each in its turn."""
    level = most * (1.0 + number % 3) / 3.0
    scanned = shape.scanned(level)
    if scanned is not None:
        yield scanned
    noisy = shape.patterned(OTHER_PATTERNS[number // 3 % len(OTHER_PATTERNS)], level)
    yield noisy, float((noisy - shape.clean).std())


@dataclass(frozen=True)
class _Reading:
    """What a cloud shows of its noise (`signs_of`), and the truth; in the network's frame."""

    rms: float
    spacing: float
    sigma: float
    signs: Float64 | None


def _read(denoiser: Denoiser, noisy: Float64, sigma: float) -> _Reading:
    """Look at a noisy cloud (N, 3) of known noise."""
    frame = frame_cloud(noisy)
    look = denoiser.sampler.first_look(frame.enter(noisy))
    spacing = frame.spacing / frame.scale
    return _Reading(trimmed_rms(look.scores), spacing, sigma / frame.scale, signs_of(look, spacing))

"""Training: the full sampler on shapes never trained on, judged by the tables' metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointmend.denoising.calibration import Calibration, fit_calibration, trimmed_rms
from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.layer import is_wide, layer_of
from pointmend.denoising.wide_calibration import fit_wide_calibration
from pointmend.evaluation.metrics import chamfer, point_to_mesh
from pointmend.evaluation.noise import add_noise
from pointmend.geometry.frames import frame_cloud
from pointmend.geometry.meshes import Mesh, unit_sphere

from .library import Source, build_shape

Float64 = NDArray[np.float64]

# Noise levels of the tables, and the finer ones the noise estimator is calibrated at.
LEVELS = (0.01, 0.02, 0.03)
CALIBRATION_LEVELS = (0.0025, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03)
CALIBRATED_FROM = 0.85


@dataclass(frozen=True)
class ValidationShape:
    """An even cloud (N, 3) in the unit sphere, and its mesh when there is one."""

    name: str
    mesh: Mesh | None
    clean: Float64

    def noisy(self, level: float) -> Float64:
        """The cloud with Gaussian noise of `level` times its radius, always the same."""
        rng = np.random.default_rng([len(self.clean), round(1e5 * level)])
        return add_noise(self.clean, "gaussian", level, rng)


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
) -> list[Score]:
    """Denoise every shape that has a mesh at every level and measure the result."""
    scores = []
    for level in levels:
        for shape in shapes:
            if shape.mesh is None:
                continue
            noisy = shape.noisy(level)
            result = denoiser.denoise(noisy, steps=steps)
            surface = point_to_mesh(result.points, shape.mesh)
            true_sigma = float((noisy - shape.clean).std())
            score = Score(
                shape=shape.name,
                points=len(noisy),
                level=level,
                cd=1e4 * chamfer(result.points, shape.clean),
                to_surface=1e5 * surface.points,
                to_points=1e5 * surface.faces,
                sigma_ratio=result.sigma / true_sigma,
            )
            after(score)
            scores.append(score)
    return scores


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
) -> Calibration:
    """Look at known noise; fit what leads from scores, layers and readings to sigma."""
    clouds = [(shape, level) for shape in shapes for level in levels]
    read = np.array([_read_noise(denoiser, shape, level) for shape, level in clouds])
    rms, spacing, sigma, readings = read.T
    calibration = fit_calibration(rms, spacing, sigma)
    if not np.isnan(readings).any():
        return replace(calibration, read=fit_calibration(readings, spacing, sigma))
    wide = []
    for (shape, level), (rms, spacing, sigma, _) in zip(clouds, read):
        about = calibration.sigma(rms, spacing)
        # From somewhat below where it counts, so that what is fitted does not end there.
        if is_wide(about / CALIBRATED_FROM, spacing):
            noisy = shape.noisy(level)
            frame = frame_cloud(noisy)
            everywhere = np.ones(len(noisy), dtype=bool)
            layer = layer_of([(noisy, everywhere)], about * frame.scale, frame.spacing)
            if layer is not None:
                wide.append((rms, layer / frame.scale, spacing, sigma))
    return replace(calibration, wide=fit_wide_calibration(*zip(*wide)) if wide else None)


def _read_noise(denoiser: Denoiser, shape: ValidationShape, level: float) -> tuple[float, ...]:
    """
    Trimmed RMS of a noisy shape's scores, its spacing, true noise, and what its points read.

    In the network's frame; the last is NaN where points do not read.
    """
    noisy = shape.noisy(level)
    frame = frame_cloud(noisy)
    look = denoiser.sampler.first_look(frame.enter(noisy))
    sigma = float((noisy - shape.clean).std())
    readings = look.noise() if look.reads_noise else math.nan
    return trimmed_rms(look.scores), frame.spacing / frame.scale, sigma / frame.scale, readings

"""Evaluation: one method on one case, measured once, kept on disk, and never measured twice."""

from __future__ import annotations

import hashlib
import io
import json
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointmend.atomic import write_atomically
from pointmend.errors import InputError
from pointmend.methods.method import Contestant, Task

from .metrics import (
    chamfer,
    distances_to_surface,
    hausdorff,
    point_to_mesh,
    share_worsened,
    spacing_variation,
    surface_error,
)
from .testsets import Case

Float64 = NDArray[np.float64]

# Raised whenever a metric changes its meaning, so that no old cell is taken for a new one.
METRICS_VERSION = 1


@dataclass(frozen=True)
class Measurement:
    """
    What one method reached on one case.

    Attributes
    ----------
    cd : Chamfer distance x 1e4.
    p2m, p2m_points, p2m_faces : point-to-mesh distance x 1e5, published variant, and its halves.
    rms, percentile_95, largest : distance to the true surface, in the units of the input.
    worsened : share of points that moved away from the surface; NaN where order is lost.
    hausdorff : largest distance between result and clean cloud, in the units of the input.
    spacing_variation : unevenness of the spacing.
    cpu_seconds : of the method alone.
    """

    cd: float
    p2m: float
    p2m_points: float
    p2m_faces: float
    rms: float
    percentile_95: float
    largest: float
    worsened: float
    hausdorff: float
    spacing_variation: float
    cpu_seconds: float


METRICS = tuple(field.name for field in fields(Measurement))


def measure(result: Float64, case: Case, *, keeps_order: bool, cpu_seconds: float) -> Measurement:
    """All metrics of a result (N, 3)."""
    surface = point_to_mesh(result, case.mesh)
    distances = distances_to_surface(result, case.mesh)
    error = surface_error(distances)
    return Measurement(
        cd=1e4 * chamfer(result, case.clean),
        p2m=1e5 * surface.total,
        p2m_points=1e5 * surface.points,
        p2m_faces=1e5 * surface.faces,
        rms=error.rms,
        percentile_95=error.percentile_95,
        largest=error.largest,
        worsened=share_worsened(case.noisy_distances, distances) if keeps_order else float("nan"),
        hausdorff=hausdorff(result, case.clean),
        spacing_variation=spacing_variation(result),
        cpu_seconds=cpu_seconds,
    )


@dataclass(frozen=True)
class CellStore:
    """Measurements in a folder, one JSON file each; with them, where asked for, the results."""

    folder: Path

    def measurement(self, contestant: Contestant, case: Case, *, keep: bool = False) -> Measurement:
        """
        The cell of a method and a case: from disk, or measured now.

        Parameters
        ----------
        keep : keep the denoised points as well, for pictures.
        """
        path = self._path(contestant, case)
        known = _read(path)
        if known is not None and (not keep or path.with_suffix(".npy").is_file()):
            return known
        began = time.process_time()
        result = contestant.method(Task(case.noisy, case.level, case.mesh))
        spent = time.process_time() - began
        if not np.isfinite(result).all():
            raise InputError(f"{contestant.name} gave points that are not finite on {case.shape}")
        keeps_order = contestant.method.keeps_order
        found = measure(result, case, keeps_order=keeps_order, cpu_seconds=spent)
        if keep:
            content = io.BytesIO()
            np.save(content, result)
            write_atomically(path.with_suffix(".npy"), content.getvalue())
        write_atomically(path, _description(contestant, case, found).encode())
        return found

    def result(self, contestant: Contestant, case: Case) -> Float64:
        """The denoised points (N, 3) of a cell."""
        self.measurement(contestant, case, keep=True)
        path = self._path(contestant, case).with_suffix(".npy")
        return np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)

    def _path(self, contestant: Contestant, case: Case) -> Path:
        key = json.dumps([METRICS_VERSION, contestant.signature, case.digest])
        name = hashlib.sha256(key.encode()).hexdigest()[:24]
        folder = self.folder / name[:2]
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{name}.json"


def _read(path: Path) -> Measurement | None:
    """A kept measurement; a file that cannot be read is as good as none."""
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["measurement"]
        return Measurement(**{k: float("nan") if v is None else v for k, v in values.items()})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _description(contestant: Contestant, case: Case, found: Measurement) -> str:
    """A cell as JSON, readable without us."""
    cell = {
        "method": contestant.name,
        "signature": contestant.signature,
        "shape": case.shape,
        "points": case.points,
        "level": case.level,
        "pattern": case.pattern,
        "measurement": {k: None if np.isnan(v) else v for k, v in asdict(found).items()},
    }
    return json.dumps(cell, indent=1) + "\n"

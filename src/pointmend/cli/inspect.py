"""Command line: `pointmend inspect`, what a file holds and how noisy it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from .model import Flag, ModelChoice
from .report import coordinate, noise, number, print_json, print_table, ratio

if TYPE_CHECKING:
    from pointmend.cloud.point_cloud import PointCloud
    from pointmend.denoising.denoiser import NoiseEstimate


@dataclass(frozen=True)
class Inspect:
    """Say what a point cloud file holds, and how dense and how noisy it is."""

    input: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    """The cloud; its suffix says which format it is in."""
    choice: Annotated[ModelChoice, tyro.conf.arg(name="")] = field(default_factory=ModelChoice)
    json: Flag = False
    """Print the result as one JSON object."""

    def run(self) -> None:
        """Read, measure, and print."""
        from pointmend.cloud.files import read

        cloud = read(self.input)
        estimate = self.choice.load().estimate_noise(cloud.positions)
        facts = describe(self.input, cloud, estimate)
        if self.json:
            print_json(facts)
        else:
            print_table(_summary(facts))


def describe(path: Path, cloud: PointCloud, estimate: NoiseEstimate) -> dict[str, Any]:
    """All there is to say about a cloud, as plain values."""
    import numpy as np

    finite = cloud.positions[np.isfinite(cloud.positions).all(axis=1)]
    low, high = cloud.bounds()
    return {
        "file": str(path),
        "format": path.suffix.lstrip(".").upper(),
        "points": len(cloud),
        "invalid": len(cloud) - len(finite),
        "duplicates": len(finite) - len(np.unique(finite, axis=0)),
        "attributes": {
            name: {"type": values.dtype.name, "columns": 1 if values.ndim == 1 else values.shape[1]}
            for name, values in cloud.attributes.items()
        },
        "bounds": {"min": low.tolist(), "max": high.tolist()},
        "spacing": estimate.spacing,
        "sigma": estimate.sigma,
        "sigma_over_spacing": ratio(estimate.sigma, estimate.spacing),
        "in_trained_range": estimate.in_trained_range,
    }


def _summary(facts: dict[str, Any]) -> dict[str, str]:
    points = [f"{facts['points']:,}"]
    if facts["invalid"]:
        points.append(f"{facts['invalid']:,} not finite")
    if facts["duplicates"]:
        points.append(f"{facts['duplicates']:,} repeat another")
    attributes = [
        f"{name} {kind['type']}" + (f" x {kind['columns']}" if kind["columns"] > 1 else "")
        for name, kind in facts["attributes"].items()
    ]
    spacing = facts["spacing"]
    bounds = zip("xyz", facts["bounds"]["min"], facts["bounds"]["max"], strict=True)
    within = "within" if facts["in_trained_range"] else "outside"
    return {
        "file": facts["file"],
        "format": facts["format"],
        "points": ", ".join(points),
        "attributes": ", ".join(attributes) or "none",
        **{
            axis: f"{coordinate(low, spacing)} to {coordinate(high, spacing)}"
            for axis, low, high in bounds
        },
        "spacing": f"{number(spacing)} (median distance to the nearest neighbour)",
        "noise": f"{noise(facts['sigma'], spacing)}, {within} what the model was trained on",
    }

"""Command line: `pointmend inspect`, what a file holds and how noisy it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pointmend.errors import InputError

from .model import Flag, MemorySize, ModelChoice
from .paths import expand
from .report import coordinate, noise, number, print_json, print_table, ratio

if TYPE_CHECKING:
    from pointmend.scans.look import Look

# More points than this are thinned for a picture.
DRAWN_POINTS = 300_000


@dataclass(frozen=True)
class Inspect:
    """Say what point cloud files hold, and how dense and how noisy they are."""

    paths: Annotated[
        tuple[Path, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="IN ...", help_behavior_hint=""),
    ]
    """The clouds; a suffix says which format a file is in."""
    picture: Annotated[
        Path | None, tyro.conf.arg(metavar="PNG", help_behavior_hint="(default: none)")
    ] = None
    """Draw the (only) cloud, coloured by how rough the surroundings of each point are."""
    overwrite: Flag = False
    """Replace the picture if it exists."""
    max_memory: MemorySize = None
    """Memory to use, such as 4G; larger LAS and PLY files are read in pieces."""
    choice: Annotated[ModelChoice, tyro.conf.arg(name="")] = field(default_factory=ModelChoice)
    json: Flag = False
    """Print the result as one JSON object, or a list of them for several inputs."""

    def run(self) -> None:
        """Read, measure, and print."""
        from pointmend.scans.budget import memory_from, plan_file
        from pointmend.scans.look import look_at

        paths = expand(self.paths)
        if self.picture is not None:
            check_picture(self.picture, len(paths), self.overwrite)
        memory = memory_from(self.max_memory)
        denoiser = None
        results = []
        for path in paths:
            budget = plan_file(path, memory)
            denoiser = denoiser or self.choice.load()
            look = look_at(denoiser, path, budget)
            results.append(describe(path, look))
            if self.picture is not None:
                draw(look, self.picture, path.name)
            if not self.json:
                print_table(_summary(results[-1]))
                print(end="\n" if path != paths[-1] else "")
        if self.json:
            print_json(results[0] if len(results) == 1 else results)


def check_picture(path: Path, inputs: int, overwrite: bool) -> None:
    """Refuse a picture that could not be written, before any work is done."""
    if inputs > 1:
        raise InputError("--picture draws one cloud; name one input")
    if path.suffix.lower() != ".png":
        raise InputError(f"{path}: pictures are written as .png; name it so")
    if not path.parent.is_dir():
        raise InputError(f"{path}: folder {path.parent} does not exist; create it first")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; add --overwrite to replace it, or name another file")


def draw(look: Look, path: Path, title: str) -> None:
    """A picture of the cloud, coloured by the distance of neighbours to their plane."""
    from pointmend.evaluation.noreference import plane_residuals
    from pointmend.evaluation.sheets import Panel, contact_sheet
    from pointmend.geometry.ordering import valid_rows

    points = look.sample.positions
    points = points[valid_rows(points)]
    if len(points) < 3:
        raise InputError("there are too few points to draw")
    points = points[:: -(-len(points) // DRAWN_POINTS)]
    rough = plane_residuals(points)
    panel = Panel(points - points.mean(axis=0), rough, f"{look.points:,} points")
    label = "distance of neighbours to their plane"
    contact_sheet([[panel]], [title], path, label=label, panel=(900, 700))


def describe(path: Path, look: Look) -> dict[str, Any]:
    """All there is to say about a cloud, as plain values."""
    from pointmend.cloud.las_crs import crs

    estimate = look.estimate
    return {
        "file": str(path),
        "format": path.suffix.lstrip(".").upper(),
        "points": look.points,
        "invalid": look.invalid,
        "duplicates": look.duplicates,
        "attributes": {
            name: {"type": values.dtype.name, "columns": 1 if values.ndim == 1 else values.shape[1]}
            for name, values in look.sample.attributes.items()
        },
        "crs": crs(look.sample),
        "bounds": {"min": look.low.tolist(), "max": look.high.tolist()},
        "spacing": estimate.spacing,
        "sigma": estimate.sigma,
        "sigma_over_spacing": ratio(estimate.sigma, estimate.spacing),
        "in_trained_range": estimate.in_trained_range,
        "nothing_to_gain": estimate.nothing_to_gain,
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
    told = f"{noise(facts['sigma'], spacing)}, {within} what the model was trained on"
    if facts["nothing_to_gain"]:
        told = f"{noise(facts['sigma'], spacing)}: nothing to gain, denoising would leave it alone"
    system = {"system": facts["crs"]} if facts["crs"] else {}
    return {
        "file": facts["file"],
        "format": facts["format"],
        "points": ", ".join(points),
        "attributes": ", ".join(attributes) or "none",
        **system,
        **{
            axis: f"{coordinate(low, spacing)} to {coordinate(high, spacing)}"
            for axis, low, high in bounds
        },
        "spacing": f"{number(spacing)} (median distance to the nearest neighbour)",
        "noise": told,
    }

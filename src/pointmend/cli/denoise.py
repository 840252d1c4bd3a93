"""Command line: `pointmend denoise`, a cloud in, the same points cleaner out."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pointmend.denoising.options import Estimator, Mode, SamplerOptions
from pointmend.errors import InputError

from .model import Flag, ModelChoice
from .progress import progress_bar
from .report import noise, number, print_json, print_table, ratio, seconds

if TYPE_CHECKING:
    from pointmend.denoising.denoiser import Result

DISPLACEMENT = "displacement"


@dataclass(frozen=True)
class Denoise:
    """Denoise a point cloud: estimate its noise, then move its points to the surface."""

    input: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    """The noisy cloud; its suffix says which format it is in."""
    output: Annotated[
        Path | None,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="[OUT]", help_behavior_hint="(default: IN.denoised.* beside IN)"),
    ] = None
    """Where to write the result; its suffix chooses the format."""
    overwrite: Flag = False
    """Replace OUT if it exists, even if it is IN."""
    write_displacement: Flag = False
    """Add an attribute 'displacement': how far each point moved."""
    sigma: Annotated[
        float | None, tyro.conf.arg(metavar="LENGTH", help_behavior_hint="(default: estimated)")
    ] = None
    """Noise level in the units of the file, if it is known."""
    strength: Annotated[float, tyro.conf.arg(metavar="0..1")] = 1.0
    """Share of the way to the surface to go; 0 leaves everything as it is."""
    steps: Annotated[int, tyro.conf.arg(metavar="N")] = 5
    """Steps of the sampler; each takes equally long."""
    eta: Annotated[float, tyro.conf.arg(metavar="0..1")] = 0.0
    """Fresh noise in every step, from none (0) to that of DDPM (1)."""
    seed: Annotated[int, tyro.conf.arg(metavar="N")] = 0
    """Seed of the fresh noise; nothing else is random."""
    mode: Mode = SamplerOptions.mode
    """How patches advance: together, or each on its own as in the paper."""
    estimator: Estimator = SamplerOptions.estimator
    """How the noise level is read off the scores; 'variance' is the paper's formula."""
    choice: Annotated[ModelChoice, tyro.conf.arg(name="")] = field(default_factory=ModelChoice)
    json: Flag = False
    """Print the result as one JSON object."""
    quiet: Flag = False
    """No progress bar and no summary."""

    def run(self) -> None:
        """Read, denoise, write, and say what was done."""
        output = output_path(self.input, self.output)
        check_output(self.input, output, self.overwrite)
        options = SamplerOptions(mode=self.mode, estimator=self.estimator)
        from pointmend.cloud.files import read, write

        cloud = read(self.input)
        if self.write_displacement and DISPLACEMENT in cloud.attributes:
            raise InputError(
                f"{self.input} already has an attribute '{DISPLACEMENT}', which would be lost; "
                "leave out --write-displacement"
            )
        with progress_bar(self.quiet) as tell:
            denoiser = self.choice.load(options)
            start = perf_counter()
            result = denoiser.denoise(
                cloud.positions,
                steps=self.steps,
                eta=self.eta,
                sigma=self.sigma,
                strength=self.strength,
                seed=self.seed,
                progress=tell,
            )
            took = perf_counter() - start
        cloud = cloud.with_positions(result.points)
        if self.write_displacement:
            cloud = cloud.with_attribute(DISPLACEMENT, result.displacement.astype("f4"))
        write(cloud, output)
        if self.json:
            print_json(self._facts(result, output, took))
        elif not self.quiet:
            print_table(self._summary(result, output, took))

    def _facts(self, result: Result, output: Path, took: float) -> dict[str, Any]:
        valid = ~result.invalid
        moved = result.displacement[valid]
        return {
            "input": str(self.input),
            "output": str(output),
            "points": len(result.points),
            "invalid": int(result.invalid.sum()),
            "sigma": result.sigma,
            "sigma_given": self.sigma is not None,
            "spacing": result.spacing,
            "sigma_over_spacing": ratio(result.sigma, result.spacing),
            "displacement": {
                "mean": float(moved.mean()) if len(moved) else 0.0,
                "max": float(moved.max(initial=0.0)),
            },
            "schedule": list(result.schedule),
            "seconds": took,
        }

    def _summary(self, result: Result, output: Path, took: float) -> dict[str, str]:
        facts = self._facts(result, output, took)
        points = f"{facts['points']:,}"
        if facts["invalid"]:
            points += f", {facts['invalid']:,} of them not finite and left as they are"
        moved = facts["displacement"]
        origin = "given" if self.sigma is not None else "estimated"
        return {
            "points": points,
            "noise": f"{noise(result.sigma, result.spacing)}, {origin}",
            "moved": f"{number(moved['mean'])} on average, {number(moved['max'])} at most",
            "time": seconds(took),
            "written": str(output),
        }


def output_path(source: Path, wanted: Path | None) -> Path:
    """Where the result goes: beside the input, unless the user wants it elsewhere."""
    return wanted or source.with_name(f"{source.stem}.denoised{source.suffix}")


def check_output(source: Path, target: Path, overwrite: bool) -> None:
    """Refuse, before any work is done, a place where the result could not or must not go."""
    from pointmend.cloud.files import known_suffixes

    for path in (source, target):
        if path.suffix.lower() not in known_suffixes():
            known = " ".join(known_suffixes())
            raise InputError(f"{path}: unknown suffix '{path.suffix}'; known are {known}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: folder {target.parent} does not exist; create it first")
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise InputError(f"{target} exists; add --overwrite to replace it, or name another file")
    same_name = os.path.abspath(source) == os.path.abspath(target)  # noqa: PTH100
    if source.exists() and target.exists() and source.samefile(target) and not same_name:
        raise InputError(f"{target} is another name of {source}; give that name to replace it")

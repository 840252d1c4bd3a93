"""Command line: `pointmend denoise`, clouds in, the same points cleaner out."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from pointmend.denoising.options import Estimator, Mode, SamplerOptions

from .batch import run_batch
from .model import Flag, InputsOrPair, MemorySize, ModelChoice
from .paths import check_output, pair_up
from .progress import progress_bar
from .report import noise, number, print_table, ratio, seconds

if TYPE_CHECKING:
    from pointmend.denoising.denoiser import Denoiser
    from pointmend.denoising.settings import Settings
    from pointmend.scans.budget import Budget
    from pointmend.scans.marks import Marks
    from pointmend.scans.tally import Tally

Noise = Literal["shared", "local"]

# From this many points on, a line says beforehand what is going to happen.
LARGE = SamplerOptions.tile_points


@dataclass(frozen=True)
class Denoise:
    """
    Denoise point clouds: estimate their noise, then move their points to the surface.

    Two paths are an input and its output; one, three or more are inputs, and so are two with --out.
    """

    paths: InputsOrPair
    """Noisy clouds; a suffix says which format a file is in. Patterns like *.laz are fine."""
    out: Annotated[
        str | None,
        tyro.conf.arg(metavar="PATH", help_behavior_hint="(default: IN.denoised.* beside IN)"),
    ] = None
    """Where results go: a file, a folder, or a pattern such as clean/{stem}.ply."""
    overwrite: Flag = False
    """Replace outputs that exist, even if they are inputs."""
    write_displacement: Flag = False
    """Add an attribute 'displacement': how far each point moved."""
    sigma: Annotated[
        float | None, tyro.conf.arg(metavar="LENGTH", help_behavior_hint="(default: estimated)")
    ] = None
    """Noise level in the units of the file, if it is known."""
    strength: Annotated[float, tyro.conf.arg(metavar="0..1")] = 1.0
    """Share of the way to the surface to go; 0 leaves everything as it is."""
    max_displacement: Annotated[
        float | None, tyro.conf.arg(metavar="LENGTH", help_behavior_hint="(default: 5 x the noise)")
    ] = None
    """No point goes farther than this, in the units of the file."""
    even_if_clean: Flag = False
    """Move points also where there is nothing to gain; by default these stay where they are."""
    flag_outliers: Flag = False
    """Mark isolated points (LAS: class 7, else an attribute 'outlier'); they do not move."""
    drop_outliers: Flag = False
    """Leave isolated points out of the result."""
    outlier_factor: Annotated[float, tyro.conf.arg(metavar="FACTOR")] = 3.0
    """A point this many times farther from others than these are from one another is isolated."""
    spread: Flag = False
    """Let points slide along the surface, too, until they lie evenly on it."""
    max_memory: MemorySize = None
    """Memory to use, such as 4G; larger clouds are worked on in tiles, LAS and PLY from disk."""
    together: Flag = False
    """Take all inputs for one cloud: neighbouring files lend each other what is around a point."""
    cluster: Annotated[
        str | None, tyro.conf.arg(metavar="ADDRESS|local[:N]", help_behavior_hint="")
    ] = None
    """The same on the workers of a dask scheduler, or on N worker processes of this machine."""
    noise: Noise = "shared"
    """Whether all tiles of a cloud share one estimate of the noise, or each makes its own."""
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
    """Print the result as one JSON object, or a list of them for several inputs."""
    quiet: Flag = False
    """No progress bar, no preflight line and no summary."""

    def run(self) -> None:
        """Read, denoise, write, and say what was done; one bad file does not stop the others."""
        pairs = pair_up(self.paths, self.out, "denoised")
        if self.together or self.cluster is not None:
            from .together import denoise_together

            denoise_together(self, pairs)
            return
        for source, target in pairs:
            check_output(source, target, self.overwrite)
        from pointmend.scans.budget import memory_from

        settings, memory = self.settings(), memory_from(self.max_memory)
        denoiser: Denoiser | None = None

        def work(source: Path, target: Path) -> dict[str, Any]:
            nonlocal denoiser
            budget = self._plan(source, memory)
            if denoiser is None:  # a file that cannot be read must not wait for the model
                denoiser = self.choice.load(self.options())
            return self._denoise(denoiser, source, target, settings, budget)

        run_batch(pairs, work, self.json)

    def settings(self) -> Settings:
        """What a user chooses about a run."""
        from pointmend.denoising.settings import Settings

        flag = self.flag_outliers or self.drop_outliers
        return Settings(
            steps=self.steps,
            eta=self.eta,
            sigma=self.sigma,
            strength=self.strength,
            seed=self.seed,
            max_displacement=self.max_displacement,
            careful=not self.even_if_clean,
            spread=self.spread,
            outliers=self.outlier_factor if flag else None,
            local_noise=self.noise == "local",
        )

    def options(self) -> SamplerOptions:
        """How the sampler runs."""
        return SamplerOptions(mode=self.mode, estimator=self.estimator)

    def marks(self, settings: Settings) -> Marks:
        """What is written beside the points."""
        from pointmend.scans.marks import Marks

        return Marks(self.write_displacement, self.drop_outliers, settings.outliers is not None)

    def _plan(self, source: Path, memory: int | None) -> Budget:
        from pointmend.scans.budget import plan_file

        budget = plan_file(source, memory)
        if (budget.points >= LARGE or memory is not None) and not self.quiet:
            print(preflight(source, budget, self.steps, self.choice.threads), file=sys.stderr)
        return budget

    def _denoise(
        self,
        denoiser: Denoiser,
        source: Path,
        target: Path,
        settings: Settings,
        budget: Budget,
    ) -> dict[str, Any]:
        from pointmend.scans.pipeline import denoise_file, nobody

        marks = self.marks(settings)
        with progress_bar(self.quiet) as tell:
            start = perf_counter()
            tally = denoise_file(denoiser, source, target, settings, marks, budget, tell or nobody)
            took = perf_counter() - start
        facts = self.facts(tally, source, target, took)
        if not self.json and not self.quiet:
            print_table(self.summary(facts))
        return facts

    def facts(self, tally: Tally, source: Path, target: Path, took: float) -> dict[str, Any]:
        """What was done to a file, as plain values."""
        return {
            "input": str(source),
            "output": str(target),
            "points": tally.points,
            "invalid": tally.invalid,
            "outliers": tally.outliers if self.flag_outliers or self.drop_outliers else None,
            "sigma": tally.sigma,
            "sigma_given": self.sigma is not None,
            "spacing": tally.spacing,
            "sigma_over_spacing": ratio(tally.sigma, tally.spacing),
            "in_trained_range": tally.in_trained_range,
            "nothing_to_gain": tally.nothing_to_gain,
            "held_back": tally.held_back,
            "displacement": {"mean": tally.moved_mean, "max": tally.moved_largest},
            "schedule": list(tally.schedule),
            "lost": list(tally.lost),
            "seconds": took,
        }

    def summary(self, facts: dict[str, Any]) -> dict[str, str]:
        """The same for people."""
        points = f"{facts['points']:,}"
        if facts["invalid"]:
            points += f", {facts['invalid']:,} of them not finite and left as they are"
        moved = facts["displacement"]
        origin = "given" if facts["sigma_given"] else "estimated"
        rows = {
            "points": points,
            "noise": f"{noise(facts['sigma'], facts['spacing'])}, {origin}",
            "moved": f"{number(moved['mean'])} on average, {number(moved['max'])} at most",
        }
        if facts["nothing_to_gain"]:
            rows["moved"] = "nothing to gain, all points are where they were"
        elif facts["held_back"]:
            share = facts["held_back"] / max(1, facts["points"] - facts["invalid"])
            rows["held back"] = f"{share:.1%} of the points, where there was nothing to gain"
        if facts["outliers"] is not None:
            what = "left out" if self.drop_outliers else "marked and not moved"
            rows["outliers"] = f"{facts['outliers']:,}, {what}"
        if facts["lost"]:
            rows["not kept"] = f"{', '.join(facts['lost'])} (the output's format has no place)"
        return rows | {"time": seconds(facts["seconds"]), "written": facts["output"]}


def preflight(source: Path, budget: Budget, steps: int, threads: int | None) -> str:
    """One line about what is going to happen; None threads are all there are."""
    import torch

    from pointmend.scans.budget import expected_seconds, megabytes

    duration = expected_seconds(budget, steps, threads or torch.get_num_threads())
    tiles = f"{budget.tiles:,} tile" + ("s" if budget.tiles > 1 else "")
    where = " streamed from disk" if budget.streamed else ""
    about = "about" if budget.counted else "at most about"
    return (
        f"{source.name}: {'' if budget.counted else 'up to '}{budget.points:,} points "
        f"in {tiles}{where}, {about} {megabytes(budget.memory)} of memory and {seconds(duration)}"
    )

"""Command line: `pointmend release`, from a checkpoint to a calibrated, validated model."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pointmend.errors import InputError

from .model import Flag, at_least_one, use_threads
from .report import print_json

if TYPE_CHECKING:
    from pointmend.training.validation import Score

# Noise reads as well on shapes trained on as on others, and the more shapes, the better the fit.
TRAINED_TO_CALIBRATE = 100


@dataclass(frozen=True)
class Release:
    """
    Turn a training checkpoint into a model file: averaged weights, calibrated noise estimate.

    Validated on the validation shapes of DATA (its folder val, and the benchmark's own validation
    names). Calibrated on these and, at the least resolution, on up to a hundred meshes trained on
    and on shapes made for it (`--made`).
    """

    checkpoint: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CHECKPOINT")]
    """The checkpoint.safetensors of a run."""
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Where the model goes: MODEL.safetensors and MODEL.json."""
    data: Annotated[Path, tyro.conf.arg(metavar="DATA")]
    """Folder with the shapes, as for training."""
    mix: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar="MODEL", help_behavior_hint="(default: none)")
    ] = ()
    """Take the mean with the weights of these models, other branches (names in the box, files)."""
    points: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N")] = (10_000, 50_000)
    """Resolutions to validate at."""
    shapes: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: all)")
    ] = None
    """Validate on this many of the validation shapes, evenly picked; all of them calibrate."""
    made: Annotated[int, tyro.conf.arg(metavar="N")] = 40
    """Calibrate on so many thin, solid and cast made shapes each, half as many of other kinds."""
    cache: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: user's cache)")
    ] = None
    """Where sampled meshes are kept between runs."""
    threads: Annotated[int, tyro.conf.arg(metavar="N")] = 1
    """CPU threads."""
    processes: Annotated[int, tyro.conf.arg(metavar="N")] = 1
    """Calibrate and validate in so many processes of one thread each, which gains more."""
    json: Flag = False
    """Print the validation as one JSON object."""

    def run(self) -> None:
        """Calibrate, validate, write, and print the validation."""
        from pointmend.geometry.sample_cache import default_cache
        from pointmend.training.library import Library, open_library, with_made_shapes
        from pointmend.training.release import release
        from pointmend.training.validation import validation_shapes

        use_threads(self.threads)
        at_least_one("--points", *self.points)
        at_least_one("--shapes", self.shapes)
        at_least_one("--processes", self.processes)
        if not self.model.parent.is_dir():
            raise InputError(f"folder {self.model.parent} does not exist; create it first")
        library = open_library(self.data, lambda line: print(line, file=sys.stderr))
        cache = self.cache or default_cache()
        sources = library.validation
        known = [s for n in self.points for s in validation_shapes(sources, n, cache)]
        trained = [source for source in library.training if source.mesh is not None]
        few = trained[:: math.ceil(max(len(trained), 1) / TRAINED_TO_CALIBRATE)]
        half = self.made // 2
        made = with_made_shapes(
            Library([], []), thin=self.made, relief=half, limbs=half, shells=self.made
        ).training
        walls = [source for source in made if source.name.startswith(("thin", "shell"))]
        others = [source for source in made if not source.name.startswith(("thin", "shell"))]
        seen = validation_shapes([*few, *others], min(self.points), cache)
        # Wide noise on flat sides alone reads short if fitted to other shapes only.
        solid = [source for source in made if source.name.startswith("solid")][::2]
        seen += validation_shapes(solid, max(self.points), cache)
        every = max(1, len(sources) // self.shapes) if self.shapes else 1
        names = {source.name for source in sources[::every][: self.shapes]}
        shapes = [shape for shape in known if shape.name in names]

        def tell(score: Score) -> None:
            if sys.stderr.isatty():
                print(f"{score.shape} {score.points} {score.level}: {score.p2m:.2f}")

        card = release(
            self.checkpoint,
            self.model,
            shapes,
            after=tell,
            calibrate_on=known,
            calibrate_more=seen,
            calibrate_walls=validation_shapes(walls, min(self.points), cache),
            mix=self.mix,
            processes=self.processes,
        )
        rows = card.facts.get("validation", [])
        if self.json:
            print_json({"validation": rows})
            return
        print(f"{'points':>7} {'noise':>6} {'CD x1e4':>8} {'P2M x1e5':>9} {'sigma/true':>11}")
        for row in rows:
            print(
                f"{row['points']:>7} {row['level']:>6.1%} {row['cd']:>8.3f} {row['p2m']:>9.3f}"
                f" {row['sigma_ratio']:>11.3f}"
            )

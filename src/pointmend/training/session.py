"""Training: a sitting: find the shapes, train, validate now and then, leave a usable model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from pointmend.denoising.denoiser import Denoiser
from pointmend.errors import InputError
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard, load_model

from .checkpoint import read_checkpoint
from .config import TrainingConfig
from .library import Source, Warn, build_shape, open_library, with_made_shapes
from .memory import keep_freed_memory
from .release import release
from .shapes import Shape
from .trainer import CHECKPOINT, Limits, StepReport, Trainer, process_place
from .validation import ValidationShape, summarise, validate, validation_shapes

MODEL = "model.safetensors"

# Validation while training: a few shapes at one level tell whether it still improves.
WATCHED_SHAPES = 4
WATCHED_POINTS = 10_000
WATCHED_LEVEL = 0.02


@dataclass(frozen=True)
class Plan:
    """
    What a sitting is asked to do.

    Attributes
    ----------
    data : folder of meshes and clean clouds.
    run : folder of the run.
    config : settings of a new run; one that continues has those of its checkpoint.
    settings : what is to be otherwise in either, by name.
    limits : when to end.
    resume : continue the run's own checkpoint.
    branch : continue another run's checkpoint here (for a cool-down), or the mean of several.
    init : a model to fine-tune: a name in the box, or a file.
    cache : where sampled meshes are kept.
    validate_every : minutes between validations; 0 for none.
    """

    data: Path
    run: Path
    config: TrainingConfig
    limits: Limits
    cache: Path
    resume: bool = False
    branch: Sequence[Path] = ()
    init: str | None = None
    validate_every: float = 30.0
    settings: Mapping[str, Any] = field(default_factory=dict)


class Session:
    """One sitting; `run` trains until a limit, a stop or a signal ends it."""

    def __init__(self, plan: Plan, warn: Warn) -> None:
        self.plan = plan
        start = _starting_point(plan)
        config = read_checkpoint(start[0])[1].training_config if start else plan.config
        config = config.changed(plan.settings)
        weights: ScoreNetwork | None = load_model(plan.init)[0] if plan.init else None
        found = open_library(plan.data, warn)
        self.library = with_made_shapes(
            found,
            thin=config.thin_shapes,
            relief=config.relief_shapes,
            limbs=config.limb_shapes,
            shells=config.shell_shapes,
        )
        shapes = _build_shapes(self.library.training, plan.cache)
        keep_freed_memory()
        self.trainer = Trainer(
            shapes,
            config,
            plan.run,
            data=self.library.digest,
            start_from=start,
            weights=weights,
        )
        self._watched: list[ValidationShape] | None = None

    def run(
        self,
        after_step: Callable[[StepReport], None] = lambda report: None,
        after_validation: Callable[[dict[str, float]], None] = lambda row: None,
    ) -> None:
        """Train, validating every now and then."""
        last = time.monotonic()

        def step_done(report: StepReport) -> None:
            nonlocal last
            after_step(report)
            every = 60.0 * self.plan.validate_every
            if every > 0 and self.trainer.rank == 0 and time.monotonic() - last > every:
                after_validation(self.validate())
                last = time.monotonic()

        self.trainer.train(self.plan.limits, step_done)

    def validate(self) -> dict[str, float]:
        """The full sampler with the averaged weights on a few validation shapes."""
        if self._watched is None:
            sources = self._judges()[:WATCHED_SHAPES]
            self._watched = validation_shapes(sources, WATCHED_POINTS, self.plan.cache)
        network = self.trainer.averaged_network()
        denoiser = Denoiser(network, ModelCard(network.config), torch.device("cpu"))
        rows = summarise(validate(denoiser, self._watched, (WATCHED_LEVEL,)))
        row: dict[str, float] = {"step": self.trainer.optimiser.step, **(rows[0] if rows else {})}
        self.trainer.state.validation.append(row)
        return row

    def write_model(self, shapes: int = WATCHED_SHAPES, levels: Sequence[float] = ()) -> Path:
        """Turn the checkpoint into a calibrated model beside it; the first process does."""
        target = self.plan.run / MODEL
        if self.trainer.rank == 0:
            judges = validation_shapes(self._judges()[:shapes], WATCHED_POINTS, self.plan.cache)
            release(self.plan.run / CHECKPOINT, target, judges, levels)
        return target

    def _judges(self) -> list[Source]:
        """Validation shapes; where a user has none, training shapes must do for calibration."""
        return self.library.validation or self.library.training


def _build_shapes(sources: Sequence[Source], cache: Path) -> list[Shape]:
    """
    All sources made ready, in their order.

    Processes that train together begin at different places: what one has sampled, the others find
    in the cache.
    """
    rank, world = process_place()
    first = rank * len(sources) // world
    places = [*range(first, len(sources)), *range(first)]
    built = {place: build_shape(sources[place], cache) for place in places}
    return [built[place] for place in range(len(sources))]


def _starting_point(plan: Plan) -> Sequence[Path]:
    """The checkpoints to continue, after making sure that none is lost."""
    own = plan.run / CHECKPOINT
    if sum((plan.resume, bool(plan.branch), plan.init is not None)) > 1:
        raise InputError("--resume, --branch and --init exclude each other: choose one")
    if plan.resume:
        return (own,)
    if own.exists():
        raise InputError(f"{plan.run} holds a run already: add --resume, or name another folder")
    return plan.branch

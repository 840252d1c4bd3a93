"""Training: Algorithm 1 in a loop that can be stopped, killed and resumed at any time."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from pointmend.errors import InputError
from pointmend.network.score import ScoreNetwork

from .algorithm import Batch, batch_losses, prepare_batch
from .checkpoint import RunState, read_mean, write_checkpoint
from .config import TrainingConfig
from .optimiser import Optimiser
from .shapes import Shape

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class StepReport:
    """What one step did: for progress bars and event files."""

    step: int
    loss: float
    first_error: float
    last_error: float
    gradient_norm: float
    learning_rate: float
    patches: int
    cpu_seconds: float


@dataclass(frozen=True)
class Limits:
    """
    When a sitting ends: at whichever of its limits is reached first; never when there is none.

    Attributes
    ----------
    steps : steps of this sitting.
    minutes : wall minutes of this sitting.
    cpu_minutes : CPU minutes of this sitting, all processes together: what makes two runs equal.
    cooldown : the learning rate falls to zero on the way to the limit, of which there must be one.
    save_every : minutes between checkpoints.
    """

    steps: int | None = None
    minutes: float | None = None
    cpu_minutes: float | None = None
    cooldown: bool = False
    save_every: float = 5.0

    def __post_init__(self) -> None:
        if self.cooldown and (self.steps, self.minutes, self.cpu_minutes) == (None, None, None):
            raise InputError("a cool-down needs its length: give the number of steps, or minutes")

    def share_used(self, steps: int, seconds: float, cpu_seconds: float) -> float:
        """How far a sitting has come towards its end: 0 at the start, 1 or more when it is over."""
        shares = [0.0]
        if self.steps is not None:
            shares.append(steps / self.steps if self.steps > 0 else 1.0)
        if self.minutes is not None:
            shares.append(seconds / (60.0 * self.minutes) if self.minutes > 0 else 1.0)
        if self.cpu_minutes is not None:
            shares.append(cpu_seconds / (60.0 * self.cpu_minutes) if self.cpu_minutes > 0 else 1.0)
        return max(shares)


class Trainer:
    """
    One run in a folder: its network, optimiser and state.

    Parameters
    ----------
    shapes : what to train on.
    config : the settings; the network of a checkpoint that is continued must be the same.
    run : the folder the run's checkpoint is written to.
    data : hash of the shapes, to be kept in the checkpoint.
    start_from : the checkpoint to continue, this run's own or another's (a cool-down branch), or
        several to continue the mean of.
    weights : a network to start with instead of random weights (fine-tuning); its configuration
        replaces that of `config`.
    """

    def __init__(
        self,
        shapes: Sequence[Shape],
        config: TrainingConfig,
        run: Path,
        *,
        data: str = "",
        start_from: Sequence[Path] = (),
        weights: ScoreNetwork | None = None,
    ) -> None:
        self.rank, self.world = process_place()
        if weights is not None:
            config = replace(config, network=weights.config)
        tensors, state = (None, RunState(config.to_dict()))
        if start_from:
            tensors, state = read_mean(start_from)
            kept = state.training_config.network
            # A network can learn to listen to more than it began with and grow deeper, and nothing
            # less.
            grown = replace(
                kept,
                layers=max(kept.layers, config.network.layers),
                blocks=max(kept.blocks, config.network.blocks),
                tails=kept.tails or config.network.tails,
                told_noise=kept.told_noise or config.network.told_noise,
                told_ways=kept.told_ways or config.network.told_ways,
            )
            if config.network != grown:
                raise InputError(
                    f"{start_from[0]} holds another network: leave network.* as it is, or "
                    "start anew"
                )
            state.config = config.to_dict()
        if config.batch % self.world:
            raise InputError(
                f"a batch of {config.batch} cannot be shared by {self.world} processes; "
                f"set batch to a multiple of {self.world}"
            )
        self.shapes, self.config, self.run_folder = shapes, config, run
        torch.manual_seed(config.seed)
        self.network = ScoreNetwork(config.network)
        if weights is not None:
            self.network.load_state_dict(weights.state_dict())
        self.optimiser = Optimiser(self.network, config)
        self.state = state
        self.state.data = data
        self.state.revision = git_revision()
        if tensors is not None:
            self.optimiser.restore(tensors, state.step, state.norm)
        self._stop = False

    def stop(self) -> None:
        """Ask for a clean stop: the step under way is finished and a checkpoint written."""
        self._stop = True

    def averaged_network(self) -> ScoreNetwork:
        """A copy of the network with the averaged weights, for validation and release."""
        network = ScoreNetwork(self.config.network)
        network.load_state_dict(self.optimiser.average)
        return network.eval()

    def save(self) -> None:
        """Write the checkpoint (the first process does)."""
        self.state.step, self.state.norm = self.optimiser.step, self.optimiser.norm
        if self.rank == 0 and self.optimiser.step > 0:
            write_checkpoint(self.run_folder / CHECKPOINT, self.optimiser.tensors(), self.state)

    def train(
        self, limits: Limits, after_step: Callable[[StepReport], None] = lambda report: None
    ) -> None:
        """Take steps until a limit is reached or a stop is asked for, then save."""
        began = saved = time.monotonic()
        cpu_before, cpu_began = self.state.cpu_seconds, time.process_time()
        first = self.optimiser.step
        with ThreadPoolExecutor(max_workers=1) as ahead:
            upcoming = ahead.submit(self._prepare, first)
            while True:
                cpu_seconds = self.world * (time.process_time() - cpu_began)
                wall_seconds = time.monotonic() - began
                share = limits.share_used(self.optimiser.step - first, wall_seconds, cpu_seconds)
                share = self._agreed(2.0 if self._stop else share)
                if share >= 1.0:
                    break
                batch = upcoming.result()
                upcoming = ahead.submit(self._prepare, self.optimiser.step + 1)
                report = self._step(batch, share if limits.cooldown else 0.0)
                self.state.cpu_seconds = cpu_before + self.world * (time.process_time() - cpu_began)
                after_step(report)
                if time.monotonic() - saved > 60.0 * limits.save_every:
                    self.save()
                    saved = time.monotonic()
        self.save()

    def _prepare(self, step: int) -> Batch:
        """The patches of a step that this process takes; the same ones whoever asks."""
        share = self.config.batch // self.world
        numbers = range(self.rank * share, (self.rank + 1) * share)
        generators = [np.random.default_rng([self.config.seed, step, n]) for n in numbers]
        return prepare_batch(self.shapes, self.network, self.config, generators)

    def _step(self, batch: Batch, cooled: float) -> StepReport:
        """One update."""
        losses = batch_losses(self.network, batch, self.config)
        norm = self.optimiser.update(losses.total, cooled)
        self.state.patches += self.config.batch
        return StepReport(
            step=self.optimiser.step,
            loss=float(losses.total.detach()),
            first_error=losses.first_error,
            last_error=losses.last_error,
            gradient_norm=norm,
            learning_rate=self.optimiser.learning_rate(cooled),
            patches=self.state.patches,
            cpu_seconds=self.state.cpu_seconds,
        )

    def _agreed(self, share: float) -> float:
        """The largest share any process sees, so that all cool and end together."""
        if self.world == 1:
            return share
        vote = torch.tensor([share], dtype=torch.float64)
        dist.all_reduce(vote, op=dist.ReduceOp.MAX)
        return float(vote.item())


def process_place() -> tuple[int, int]:
    """Rank and number of processes; joins the others when started by torchrun."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return 0, 1
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    return dist.get_rank(), world


def git_revision() -> str:
    """The revision of the code, when it runs from a git checkout."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()

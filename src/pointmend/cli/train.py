"""Command line: `pointmend train`, a model from your own shapes."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from pointmend.errors import InputError

from .model import Flag, at_least_one, use_threads
from .paths import make_folder

if TYPE_CHECKING:
    from pointmend.training.trainer import StepReport


@dataclass(frozen=True)
class Train:
    """
    Train a model on a folder of meshes or clean clouds, or fine-tune the one in the box.

    Stops cleanly on Ctrl-C and can be resumed at any time, also after a crash.
    """

    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Folder of meshes (OFF, OBJ, PLY, STL) or clean clouds (PLY, XYZ, NPY, NPZ), nested or not."""
    out: Annotated[Path, tyro.conf.arg(metavar="RUN")]
    """Folder of the run: checkpoint, events, and at the end model.safetensors."""
    config: Literal["default", "paper"] = "default"
    """The network of the shipped weights, or the one the paper describes."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE", help_behavior_hint="")] = ()
    """Other settings than the configuration's, e.g. learning_rate=1e-3 network.hidden=128."""
    steps: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: no limit)")
    ] = None
    """Stop after this many steps."""
    minutes: Annotated[
        float | None, tyro.conf.arg(metavar="M", help_behavior_hint="(default: no limit)")
    ] = None
    """Stop after this many minutes."""
    cpu_minutes: Annotated[
        float | None, tyro.conf.arg(metavar="M", help_behavior_hint="(default: no limit)")
    ] = None
    """Stop after this many CPU minutes, all processes together."""
    resume: Flag = False
    """Continue the run in RUN where it stopped."""
    branch: Annotated[
        tuple[Path, ...], tyro.conf.arg(metavar="CHECKPOINT", help_behavior_hint="")
    ] = ()
    """Continue another run's checkpoint in RUN, leaving that run as it is; the mean of several."""
    cooldown: Flag = False
    """Let the learning rate fall to zero on the way to the limit, as before a release."""
    init: Annotated[str | None, tyro.conf.arg(metavar="MODEL", help_behavior_hint="")] = None
    """Fine-tune this model: a name in the box, or a file."""
    cache: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: user's cache)")
    ] = None
    """Where sampled meshes are kept between runs."""
    validate_every: Annotated[float, tyro.conf.arg(metavar="M")] = 30.0
    """Minutes between validations; 0 for none."""
    threads: Annotated[int, tyro.conf.arg(metavar="N")] = 1
    """CPU threads; more processes (torchrun) gain more than more threads."""

    def run(self) -> None:
        """Train until a limit or a signal, then write the model."""
        from pointmend.geometry.sample_cache import default_cache
        from pointmend.training.config import CONFIGURATIONS
        from pointmend.training.session import Plan, Session
        from pointmend.training.trainer import Limits

        use_threads(self.threads)
        at_least_one("--steps", self.steps)
        plan = Plan(
            data=self.data,
            run=self.out,
            config=CONFIGURATIONS[self.config],
            settings=parse_settings(self.set),
            limits=Limits(self.steps, self.minutes, self.cpu_minutes, self.cooldown),
            cache=self.cache or default_cache(),
            resume=self.resume,
            branch=self.branch,
            init=self.init,
            validate_every=self.validate_every,
        )
        session = Session(plan, lambda line: print(f"pointmend: {line}", file=sys.stderr))
        make_folder(self.out)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: session.trainer.stop())
        with _events(self.out, session.trainer.rank) as events, _bar(self.steps) as bar:

            def after_step(report: StepReport) -> None:
                events(report.step, {k: v for k, v in vars(report).items() if k != "step"})
                bar(report)

            def after_validation(row: dict[str, float]) -> None:
                events(int(row["step"]), {f"validation/{k}": v for k, v in row.items()})

            session.run(after_step, after_validation)
            model = session.write_model()
        if session.trainer.rank == 0:
            state = session.trainer.state
            print(f"{state.patches:,} patches, {state.cpu_seconds / 3600:.2f} CPU hours: {model}")


def parse_settings(words: tuple[str, ...]) -> dict[str, Any]:
    """Settings written KEY=VALUE; values are JSON, or plain words."""
    settings: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"--set {word}: write it as KEY=VALUE")
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    return settings


@contextmanager
def _events(run: Path, rank: int) -> Iterator[Callable[[int, dict[str, Any]], None]]:
    """TensorBoard events in RUN/events, where tensorboard is installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        yield lambda step, values: None
        return
    if rank != 0:
        yield lambda step, values: None
        return
    writer = SummaryWriter(str(run / "events"))

    def write(step: int, values: dict[str, Any]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    try:
        yield write
    finally:
        writer.close()


@contextmanager
def _bar(steps: int | None) -> Iterator[Callable[[StepReport], None]]:
    """A progress bar on a terminal: loss, patches per second, time left."""
    if not sys.stderr.isatty():
        yield lambda report: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("training", total=steps)
        import time

        began = time.monotonic()
        first: int | None = None
        smooth = 0.0

        def tell(report: StepReport) -> None:
            nonlocal first, smooth
            if first is None:
                first, smooth = report.patches, report.last_error
            smooth = 0.98 * smooth + 0.02 * report.last_error
            speed = (report.patches - first) / (time.monotonic() - began)
            text = f"step {report.step}  error {smooth:.2f}  {speed:.1f} patches/s"
            progress.update(task, description=text, advance=1)

        yield tell

"""Training: checkpoints, one safetensors file each with its state in the header, atomic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from pointmend.atomic import write_atomically
from pointmend.errors import InputError

from .config import TrainingConfig


@dataclass
class RunState:
    """
    What a run knows about itself besides its tensors.

    Attributes
    ----------
    config : the settings, as plain values.
    step, patches : steps taken and patches seen by all processes.
    cpu_seconds : process time of all processes, over all sittings.
    norm : the optimiser's running gradient norm.
    data : hash of the training shapes.
    revision : git revision of the code that last wrote it.
    validation : one entry per validation, oldest first.
    """

    config: dict[str, Any]
    step: int = 0
    patches: int = 0
    cpu_seconds: float = 0.0
    norm: float = 0.0
    data: str = ""
    revision: str = ""
    validation: list[dict[str, Any]] = field(default_factory=list)

    @property
    def training_config(self) -> TrainingConfig:
        """The settings, typed."""
        return TrainingConfig.from_dict(self.config)


def write_checkpoint(path: Path, tensors: dict[str, Tensor], state: RunState) -> None:
    """
    Write a checkpoint so that a crash at any moment leaves the old one or the new one.

    Beside the target, synced, then renamed. A readable copy of the state goes to a .json file,
    which nothing reads back.
    """
    content = save(tensors, metadata={"state": json.dumps(asdict(state))})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
    readable = json.dumps(asdict(state), indent=1) + "\n"
    write_atomically(path.with_suffix(".json"), readable.encode())


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], RunState]:
    """Read a checkpoint's tensors and state."""
    if not path.is_file():
        raise InputError(f"{path}: no checkpoint to continue; check the folder, or begin a new run")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            state = RunState(**json.loads((file.metadata() or {})["state"]))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not a checkpoint of pointmend: {error}") from error
    return tensors, state


def read_mean(paths: Sequence[Path]) -> tuple[dict[str, Tensor], RunState]:
    """
    A checkpoint to go on from: one as it is, or the mean of several branches of one trunk.

    Branches are averaged by their averaged weights, which lie nearer to each other than those of
    their last steps. Steps, patches and CPU time are those of the first branch.
    """
    read = [read_checkpoint(path) for path in paths]
    tensors, state = read[0]
    if len(read) == 1:
        return tensors, state
    sizes = [{name: tensor.shape for name, tensor in each.items()} for each, _ in read]
    if any(other != sizes[0] for other in sizes):
        raise InputError("the mean of different networks or optimisers cannot be continued")
    mean = {}
    for name in tensors:
        kind, _, parameter = name.partition(".")
        kept = f"average.{parameter}" if kind == "weight" else name
        mean[name] = torch.stack([each[kept] for each, _ in read]).mean(dim=0)
    return mean, state

"""Command line: loading the model, with the options that every command shares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pointmend.errors import InputError

if TYPE_CHECKING:
    from pointmend.denoising.denoiser import Denoiser
    from pointmend.denoising.options import SamplerOptions


Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
InputsOrPair = Annotated[
    tuple[Path, ...],
    tyro.conf.Positional,
    tyro.conf.arg(metavar="IN [OUT] | IN IN IN ...", help_behavior_hint=""),
]
MemorySize = Annotated[
    str | None, tyro.conf.arg(metavar="SIZE", help_behavior_hint="(default: half of all)")
]


def at_least_one(option: str, *values: int | None) -> None:
    """Refuse numbers below 1; None is an option that was not given."""
    for value in values:
        if value is not None and value < 1:
            raise InputError(f"{option} is {value}; at least 1 is needed")


def use_threads(count: int) -> None:
    """Let torch compute on so many threads."""
    at_least_one("--threads", count)
    import torch

    torch.set_num_threads(count)


@dataclass(frozen=True)
class ModelChoice:
    """Which model runs, and where."""

    model: Annotated[str, tyro.conf.arg(metavar="NAME")] = "default"
    """A model in the box, or the path of a .safetensors file with its .json beside it."""
    device: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """Where to compute: cpu, cuda, ...; auto takes a GPU when there is one."""
    threads: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: all cores)")
    ] = None
    """CPU threads to use."""

    def load(self, options: SamplerOptions | None = None) -> Denoiser:
        """Load the model; this is where torch is imported."""
        if self.threads is not None:
            use_threads(self.threads)
        from pointmend.denoising.denoiser import Denoiser

        return Denoiser.load(self.model, self.device, options)
